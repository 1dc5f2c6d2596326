import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { PANE } from "../shell/panes";
import { ProblemBox } from "../ui/problem-box";
import { ApprovalCard } from "./approval-card";
import { useOpenApprovals } from "./approvals";
import { Composer } from "./composer";
import { MessageList } from "./message-list";
import { type Place, routeId } from "./place";
import { sessionOf } from "./sessions";
import { TurnLine } from "./turn-line";

interface Props {
  place: Place;
  label?: string;
  /** What stands above what was said. */
  head?: ReactNode;
}

/** A conversation: what was said, what goes on, and where to write. */
export function Chat({ place, label = "Chat", head }: Props) {
  const key = routeId(place);
  // oxlint-disable-next-line react/exhaustive-deps -- the key is the place
  const session = useMemo(() => sessionOf(place), [key]);
  const chat = useSyncExternalStore(session.subscribe, session.getSnapshot);
  useEndOfTurn(chat.turns.length, place.agentId);
  const due = useOpenApprovals(place.agentId).get(place.conversationId)?.due_at ?? null;
  const isBusy = chat.turns.some((turn) => turn.phase === "sending");
  return (
    <section className="chat" aria-label={label} {...PANE}>
      {head}
      {chat.status === "failed" && chat.problem && (
        <ProblemBox title="Could not load the conversation" problem={chat.problem} retry={() => void session.load()} />
      )}
      <MessageList chat={chat} place={place} older={session.loadOlder} again={session.sendAgain} />
      <div className="chat-foot">
        {chat.turns.map((turn, at) => <TurnLine key={turn.id} turn={turn} isFirst={at === 0} session={session} />)}
        {chat.waiting.length > 0 && (
          <ApprovalCard
            key={chat.waiting.map((call) => call.key).join()}
            calls={chat.waiting}
            attention={chat.attention}
            due={due}
            agentId={place.agentId}
            answer={session.answer}
          />
        )}
        {chat.refusal && (
          <div className="refusal" role="alert">
            <strong>Not sent.</strong> {chat.refusal.sentence}
            {chat.refusal.trace && <span className="muted small"> Trace {chat.refusal.trace}</span>}
            <button type="button" onClick={session.dismissRefusal}>Dismiss</button>
          </div>
        )}
        <Composer session={session} isBusy={isBusy} />
      </div>
    </section>
  );
}

/** What a turn may have changed of its agent, as other panes show it. */
const CHANGED = ["approvals", "context", "checkpoints", "blocks", "passages", "agent-runs", "agent-files"];

/** Has the panes beside the chat and the list of agents ask anew when a turn has ended. */
function useEndOfTurn(turns: number, agentId: string): void {
  const queries = useQueryClient();
  const before = useRef(turns);
  useEffect(() => {
    if (turns < before.current) {
      for (const key of CHANGED) void queries.invalidateQueries({ queryKey: [key, agentId] });
      void queries.invalidateQueries({ queryKey: ["agents"] });
    }
    before.current = turns;
  }, [turns, agentId, queries]);
}
