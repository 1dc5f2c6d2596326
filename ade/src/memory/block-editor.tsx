import { History, Undo2 } from "lucide-react";
import { type KeyboardEvent, useEffect, useReducer, useState } from "react";
import { isStatus, problemOf, type Problem } from "../api/errors";
import { useRefusal } from "../shell/access-gate";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { BlockHistory } from "./block-history";
import { type Block, newest, save, travel, VERSIONS } from "./blocks";
import { begin, type Edit, next, type Version } from "./edit";

const STATUS: Record<Edit["status"], string> = {
  clean: "",
  unsaved: "Unsaved",
  saving: "Saving ...",
  saved: "Saved",
  conflict: "Conflict",
};

/** Edits a block in place. It never writes over what somebody else stored meanwhile. */
export function BlockEditor({ block, agentId }: { block: Block; agentId: string }) {
  const [edit, happen] = useReducer(next, begin({ value: block.value, version: 0 }));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const [shown, show] = useState<number | null>(null);
  const role = useRefusal("write_agent", agentId);
  const refusal = role ?? (block.read_only ? "This block is read-only for the agent; people may change it." : null);

  // The list says that there is another value; the block says which version that is.
  useEffect(() => {
    let isGone = false;
    newest(block.id).then(
      (now) => isGone || happen({ type: "seen", now }),
      (error: unknown) => isGone || setProblem(problemOf(error)),
    );
    return () => {
      isGone = true;
    };
  }, [block.id, block.value]);

  const attempt = async (act: () => Promise<Version>): Promise<void> => {
    happen({ type: "saving" });
    setProblem(null);
    try {
      happen({ type: "saved", now: await act() });
    } catch (error) {
      happen({ type: "refused" });
      if (isStatus(error, 409)) happen({ type: "conflict", theirs: await newest(block.id) });
      else setProblem(problemOf(error));
    }
  };
  const store = (): void => {
    if (role === null && edit.status === "unsaved") void attempt(() => save(block.id, edit.text, edit.base.version));
  };
  const jump = (journey: "undo" | "restore", version?: number): void => {
    happen({ type: "typed", text: edit.base.value });
    void attempt(async () => {
      const now = await travel(block.id, journey, edit.base.version, version);
      happen({ type: "typed", text: now.value });
      return now;
    });
  };
  /** Shows an older version (1) or a newer one (-1); from none, the newest. */
  const step = (by: number): void => {
    const now = edit.base.version;
    const wanted = isHistoryOpen && shown !== null ? shown - by : now;
    setHistoryOpen(true);
    show(Math.min(now, Math.max(wanted, now - VERSIONS + 1, 1)));
  };
  const walk = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!event.altKey || by === undefined || edit.base.version < 1) return;
    event.preventDefault();
    step(by);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    store();
  };
  const isOver = edit.text.length > block.limit;
  const noteId = `note-${block.id}`;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- keys of what is within
    <section className="block-editor" aria-label={`Block ${block.label}`} onKeyDown={walk}>
      <header>
        <h3><code>{block.label}</code> <span className="muted small">v{edit.base.version}</span></h3>
        <span className={`small ${isOver ? "error-text" : "muted"}`}>
          {edit.text.length.toLocaleString("en")}/{block.limit.toLocaleString("en")}
        </span>
        <IconButton
          label={`Undo the last change of ${block.label}`}
          icon={Undo2}
          disabled={role !== null || edit.base.version < 2 || edit.status === "unsaved"}
          onClick={() => jump("undo")}
        />
        <IconButton
          label={`History of ${block.label}`}
          title="History (Alt+Down, Alt+Up)"
          icon={History}
          aria-expanded={isHistoryOpen}
          onClick={() => setHistoryOpen(!isHistoryOpen)}
        />
      </header>
      <textarea
        aria-label={`Value of ${block.label}`}
        aria-describedby={noteId}
        value={edit.text}
        readOnly={role !== null}
        onChange={(event) => happen({ type: "typed", text: event.target.value })}
        onKeyDown={press}
      />
      <div className="block-end">
        <span role="status" className={`small ${edit.status === "conflict" ? "error-text" : "muted"}`}>{STATUS[edit.status]}</span>
        <span className="muted small" id={noteId}>{refusal ?? ""}</span>
        <span className="spacer" />
        <button
          type="button"
          className={edit.status === "unsaved" ? "primary" : ""}
          aria-disabled={edit.status !== "unsaved" || role !== null}
          disabled={role !== null}
          title={role ?? "Save (Ctrl+S)"}
          onClick={store}
        >
          Save
        </button>
      </div>
      {edit.theirs && <Conflict theirs={edit.theirs} take={() => happen({ type: "take theirs" })} keep={() => happen({ type: "keep mine" })} />}
      {problem && <ProblemBox title={`Could not save ${block.label}`} problem={problem} />}
      {isHistoryOpen && edit.base.version > 0 && (
        <BlockHistory blockId={block.id} now={edit.base.version} shown={shown} show={show} {...(role === null && { restore: (version: number) => jump("restore", version) })} />
      )}
    </section>
  );
}

function Conflict({ theirs, take, keep }: { theirs: Version; take: () => void; keep: () => void }) {
  return (
    <div className="conflict" role="alert">
      <p><strong>It was changed meanwhile</strong> (version {theirs.version}). Yours is above; theirs is here. Keep yours to save over it.</p>
      <pre className="plain" tabIndex={0}>{theirs.value || "(empty)"}</pre>
      <div className="block-end">
        <button type="button" onClick={take}>Take theirs</button>
        <button type="button" onClick={keep}>Keep mine</button>
      </div>
    </div>
  );
}
