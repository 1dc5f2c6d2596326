import { useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2, X } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { problemOf } from "../api/errors";
import { useCaller, useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { DraftForm } from "../ui/draft-form";
import { partsOf, textOf } from "../ui/field";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { change, insert, type Passage, remove, scoreWords, usePassages } from "./passages";

/** The long-term memory of an agent: what it finds by searching. */
export function ArchivePane({ agentId }: { agentId: string }) {
  const [text, setText] = useState("");
  const [tag, setTag] = useState("");
  const query = useDeferredValue(text.trim());
  const maySearch = useCaller().rights.includes("read");
  const found = usePassages(agentId, { query, tag, maySearch });
  const refusal = useRefusal("write_agent", agentId);
  const queries = useQueryClient();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["passages", agentId] });
  const passages = found.data?.passages ?? [];
  return (
    <div className="archive">
      <input
        type="search"
        aria-label="Search the archive"
        placeholder={maySearch ? "Search by meaning and words" : "Search by words"}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {tag && (
        <p className="file-line small">
          With the tag <span className="tag">{tag}</span>
          <IconButton label="All tags" icon={X} onClick={() => setTag("")} />
        </p>
      )}
      {refusal === null && <NewPassage agentId={agentId} done={refresh} />}
      {query && found.data?.byWordsAlone && maySearch && (
        <p className="muted small">Searched by words alone: the embedding model does not answer.</p>
      )}
      {found.isError && <ProblemBox title="Could not search" problem={problemOf(found.error)} retry={() => void found.refetch()} />}
      {found.isSuccess && !passages.length && (
        <p className="empty">{query || tag ? "Nothing fits." : "Nothing is here yet. The agent puts here what it should find later; so can you."}</p>
      )}
      <ul className="passages">
        {passages.map((passage) => (
          <Row key={passage.id} agentId={agentId} passage={passage} isWritable={refusal === null} choose={setTag} refresh={refresh} />
        ))}
      </ul>
    </div>
  );
}

interface RowProps {
  agentId: string;
  passage: Passage;
  isWritable: boolean;
  choose: (tag: string) => void;
  refresh: () => Promise<void>;
}

function Row({ agentId, passage, isWritable, choose, refresh }: RowProps) {
  const [isEdited, setEdited] = useState(false);
  const drop = async (): Promise<void> => {
    try {
      await remove(agentId, passage.id);
      const undo = (): void => void insert(agentId, passage).then(refresh, (error: unknown) => toast(`Could not undo it: ${problemOf(error).sentence}`));
      toast("Deleted a passage", { label: "Undo", run: undo });
      await refresh();
    } catch (error) {
      toast(`Could not delete it: ${problemOf(error).sentence}`);
    }
  };
  if (isEdited) {
    return <li className="passage"><Edit agentId={agentId} passage={passage} done={refresh} leave={() => setEdited(false)} /></li>;
  }
  return (
    <li className="passage">
      <p className="plain">{passage.text}</p>
      <div className="block-end">
        {passage.scores && <span className="muted small" title={`fused: ${passage.scores.all.toPrecision(3)}`}>{scoreWords(passage.scores)}</span>}
        {passage.tags?.map((tag) => (
          <button type="button" className="tag" key={tag} aria-label={`Only passages with the tag ${tag}`} onClick={() => choose(tag)}>{tag}</button>
        ))}
        <span className="muted small">{ago(passage.created_at)}</span>
        {isWritable && (
          <span className="row-actions">
            <IconButton label="Change this passage" icon={Pencil} onClick={() => setEdited(true)} />
            <IconButton label="Delete this passage" icon={Trash2} onClick={() => void drop()} />
          </span>
        )}
      </div>
    </li>
  );
}

function NewPassage({ agentId, done }: { agentId: string; done: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false);
  const action = useAction();
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>Add a passage</button>;
  return (
    <DraftForm
      name={`passage-${agentId}`}
      className="new-passage"
      action={action}
      failure="Could not add it"
      send={async (fields) => {
        await insert(agentId, { text: textOf(fields, "text"), tags: partsOf(fields.get("tags")) });
        setOpen(false);
        await done();
      }}
    >
      <Fields passage={null} />
      <div className="block-end">
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
        <button type="submit" className="primary" aria-disabled={action.isBusy}>Add</button>
      </div>
    </DraftForm>
  );
}

function Edit({ agentId, passage, done, leave }: { agentId: string; passage: Passage; done: () => Promise<void>; leave: () => void }) {
  const action = useAction();
  return (
    <DraftForm
      name={`passage-${passage.id}`}
      className="new-passage"
      action={action}
      failure="Could not change it"
      send={async (fields) => {
        await change(agentId, passage.id, { text: textOf(fields, "text"), tags: partsOf(fields.get("tags")) });
        await done();
        leave();
      }}
    >
      <Fields passage={passage} />
      <div className="block-end">
        <button type="button" onClick={leave}>Cancel</button>
        <button type="submit" className="primary" aria-disabled={action.isBusy}>Save</button>
      </div>
    </DraftForm>
  );
}

function Fields({ passage }: { passage: Passage | null }) {
  return (
    <>
      <textarea name="text" aria-label="Text of the passage" required rows={3} defaultValue={passage?.text ?? ""} />
      <input name="tags" aria-label="Tags of the passage" placeholder="Tags, with commas" defaultValue={passage?.tags?.join(", ") ?? ""} />
    </>
  );
}
