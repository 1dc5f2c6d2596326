import { useQueryClient } from "@tanstack/react-query";
import { Ellipsis, Hand, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { IconButton } from "../ui/icon-button";
import { Menu, type MenuItem } from "../ui/menu";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useOpenApprovals } from "./approvals";
import { useConversations } from "./conversation-list";
import { MessageSearch } from "./message-search";
import { chatPath, type Place } from "./place";

/** The conversations of an agent, side by side: each has its own history, all share the memory. */
export function Conversations({ place, onChoose }: { place: Place; onChoose: () => void }) {
  const { agentId, conversationId, beside = null } = place;
  const queries = useQueryClient();
  const list = useConversations(agentId);
  const waiting = useOpenApprovals(agentId);
  const mayRead = useRefusal("read_messages", agentId);
  const mayTalk = useRefusal("write_messages", agentId);
  const mayWrite = useRefusal("write_agent", agentId);
  const [isBusy, setBusy] = useState(false);
  const [isAll, setAll] = useState(false);
  const archived = list.data?.filter((each) => each.archived).length ?? 0;
  // The one that is open stays in view.
  const shown = list.data?.filter((each) => isAll || !each.archived || each.id === conversationId);

  const open = (id: string | null): void => {
    onChoose();
    navigate(chatPath({ agentId, conversationId: id, beside }));
  };
  const openBeside = (id: string): void => navigate(chatPath({ agentId, conversationId, beside: id }));
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    try {
      await act();
      await queries.invalidateQueries({ queryKey: ["conversations", agentId] });
    } catch (error) {
      toast(`${what}: ${problemOf(error).sentence}`);
    }
    setBusy(false);
  };
  const create = (): Promise<void> =>
    attempt("Could not begin a conversation", async () => {
      const made = await api().conversations.create({ agent_id: agentId }, { maxRetries: 0 });
      open(made.id);
    });
  const rename = (id: string, summary: string): Promise<void> =>
    attempt("Could not rename the conversation", () => api().conversations.update(id, { summary }, { maxRetries: 0 }));
  const archive = (id: string, isOver: boolean): Promise<void> =>
    attempt("Could not archive the conversation", () => api().conversations.update(id, { archived: isOver }, { maxRetries: 0 }));
  const remove = (id: string): Promise<void> =>
    attempt("Could not delete the conversation", async () => {
      await api().conversations.delete(id);
      if (id === conversationId || id === beside) navigate(chatPath({ agentId, conversationId: id === conversationId ? null : conversationId }));
    });

  return (
    <>
      <div className="side-head">
        <h2>Conversations</h2>
        <IconButton
          label="New conversation"
          icon={Plus}
          aria-disabled={isBusy}
          disabled={mayTalk !== null}
          title={mayTalk ?? "New conversation"}
          onClick={() => void create()}
        />
      </div>
      {mayRead === null && <MessageSearch place={place} onChoose={onChoose} />}
      <ul className="conversations">
        <Row
          title="Main"
          note=""
          to={chatPath({ agentId, conversationId: null, beside })}
          isOpen={!conversationId}
          isWaiting={waiting.has(null)}
          onChoose={onChoose}
          openBeside={() => openBeside("main")}
        />
        {shown?.map((each) => (
          <Row
            key={each.id}
            title={each.title}
            note={each.archived ? "archived" : ago(each.last_message_at ?? each.created_at)}
            to={chatPath({ agentId, conversationId: each.id, beside })}
            isOpen={each.id === conversationId}
            isWaiting={waiting.has(each.id)}
            onChoose={onChoose}
            openBeside={() => openBeside(each.id)}
            {...(mayWrite === null && {
              archive: { label: each.archived ? "Bring back" : "Archive", run: () => void archive(each.id, !each.archived) },
              rename: (summary: string) => void rename(each.id, summary),
              remove: () => void remove(each.id),
            })}
          />
        ))}
      </ul>
      {archived > 0 && (
        <button type="button" className="quiet more" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? "Hide what is archived" : `Show ${archived} archived`}
        </button>
      )}
      {list.isError && (
        <ProblemBox title="Could not load the conversations" problem={problemOf(list.error)} retry={() => void list.refetch()} />
      )}
    </>
  );
}

interface RowProps {
  title: string;
  note: string;
  to: string;
  isOpen: boolean;
  /** Whether a call in it waits for a person. */
  isWaiting: boolean;
  onChoose: () => void;
  openBeside: () => void;
  archive?: MenuItem;
  rename?: (title: string) => void;
  remove?: () => void;
}

function Row({ title, note, to, isOpen, isWaiting, onChoose, openBeside, archive, rename, remove }: RowProps) {
  const [state, setState] = useState<"shown" | "renamed" | "asking">("shown");
  if (state === "asking" && remove) {
    return (
      <li className="conversation asking">
        <span className="small">Delete it with its messages?</span>
        <button type="button" onClick={() => setState("shown")}>Keep</button>
        <button type="button" className="dangerous" onClick={remove}>Delete</button>
      </li>
    );
  }
  if (state === "renamed" && rename) {
    return (
      <li className="conversation asking">
        <Rename
          title={title}
          leave={() => setState("shown")}
          rename={(next) => {
            setState("shown");
            rename(next);
          }}
        />
      </li>
    );
  }
  const items: MenuItem[] = [
    ...(isOpen ? [] : [{ label: "Open beside", run: openBeside }]),
    ...(rename ? [{ label: "Rename", run: () => setState("renamed") }] : []),
    ...(archive ? [archive] : []),
    ...(remove ? [{ label: "Delete", run: () => setState("asking"), isDangerous: true }] : []),
  ];
  return (
    <li className="conversation">
      <Link href={to} aria-current={isOpen ? "true" : undefined} onClick={onChoose}>
        <span className="cut">{title}</span>
        {isWaiting ? <span className="waiting-mark"><Hand aria-hidden size={14} /> Needs you</span> : <span className="muted small">{note}</span>}
      </Link>
      {items.length > 0 && <Menu label={`More about ${title}`} icon={Ellipsis} items={items} />}
    </li>
  );
}

function Rename({ title, rename, leave }: { title: string; rename: (title: string) => void; leave: () => void }) {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const next = String(new FormData(event.currentTarget).get("title")).trim();
    if (next) rename(next);
  };
  return (
    <form className="rename" onSubmit={submit}>
      <input
        name="title"
        aria-label={`New name of ${title}`}
        defaultValue={title}
        required
        maxLength={200}
        // Who chose it types.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        onKeyDown={(event) => {
          if (event.key === "Escape") leave();
        }}
      />
      <button type="submit">Rename</button>
    </form>
  );
}
