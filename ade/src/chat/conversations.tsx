import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { chatPath, type Place } from "./place";

interface Conversation {
  id: string;
  summary?: string | null;
  created_at?: string | null;
  last_message_at?: string | null;
}

const LIMIT = 100;

/** The conversations of an agent, side by side: each has its own history, all share the memory. */
export function Conversations({ place, onChoose }: { place: Place; onChoose: () => void }) {
  const { agentId, conversationId } = place;
  const queries = useQueryClient();
  const queryKey = ["conversations", agentId];
  const list = useQuery({
    queryKey,
    queryFn: async () => {
      const query = { agent_id: agentId, order_by: "last_message_at" as const, limit: LIMIT };
      return (await api().conversations.list(query)) as unknown as Conversation[];
    },
  });
  const mayTalk = useRefusal("write_messages", agentId);
  const mayWrite = useRefusal("write_agent", agentId);
  const [isBusy, setBusy] = useState(false);

  const open = (id: string | null): void => {
    onChoose();
    navigate(chatPath({ agentId, conversationId: id }));
  };
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    try {
      await act();
      await queries.invalidateQueries({ queryKey });
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
  const remove = (id: string): Promise<void> =>
    attempt("Could not delete the conversation", async () => {
      await api().conversations.delete(id);
      if (id === conversationId) open(null);
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
      <ul className="conversations">
        <Row title="Main" note="" to={chatPath({ agentId, conversationId: null })} isOpen={!conversationId} onChoose={onChoose} />
        {list.data?.map((each, at) => (
          <Row
            key={each.id}
            title={each.summary || `Conversation ${list.data.length - at}`}
            note={ago(each.last_message_at ?? each.created_at)}
            to={chatPath({ agentId, conversationId: each.id })}
            isOpen={each.id === conversationId}
            onChoose={onChoose}
            {...(mayWrite === null && { remove: () => void remove(each.id) })}
          />
        ))}
      </ul>
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
  onChoose: () => void;
  remove?: () => void;
}

function Row({ title, note, to, isOpen, onChoose, remove }: RowProps) {
  const [isAsking, setAsking] = useState(false);
  if (isAsking && remove) {
    return (
      <li className="conversation asking">
        <span className="small">Delete it with its messages?</span>
        <button type="button" onClick={() => setAsking(false)}>Keep</button>
        <button type="button" className="dangerous" onClick={remove}>Delete</button>
      </li>
    );
  }
  return (
    <li className="conversation">
      <Link href={to} aria-current={isOpen ? "true" : undefined} onClick={onChoose}>
        <span className="cut">{title}</span>
        <span className="muted small">{note}</span>
      </Link>
      {remove && <IconButton label={`Delete ${title}`} icon={Trash2} onClick={() => setAsking(true)} />}
    </li>
  );
}
