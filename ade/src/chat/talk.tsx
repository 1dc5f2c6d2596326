import { ProblemBox } from "../ui/problem-box";
import { ApprovalCard } from "./approval-card";
import { Composer } from "./composer";
import { MessageList } from "./message-list";
import type { Place } from "./place";
import type { Session, Snapshot } from "./session";
import { TurnLine } from "./turn-line";

interface Props {
  session: Session;
  chat: Snapshot;
  /** Where it is of an agent; null: of a group. */
  place: Place | null;
  /** When a rule answers the calls that wait; null: never. */
  due: string | null;
}

/** What was said, what goes on, and where to write. */
export function Talk({ session, chat, place, due }: Props) {
  const isBusy = chat.turns.some((turn) => turn.phase === "sending");
  return (
    <>
      {chat.status === "failed" && chat.problem && (
        <ProblemBox title="Could not load the conversation" problem={chat.problem} retry={() => void session.load()} />
      )}
      <MessageList key={chat.visits} chat={chat} place={place} session={session} />
      <div className="chat-foot">
        {chat.turns.map((turn, at) => <TurnLine key={turn.id} turn={turn} isFirst={at === 0} session={session} />)}
        {chat.waiting.length > 0 && (
          <ApprovalCard
            key={chat.waiting.map((call) => call.key).join()}
            calls={chat.waiting}
            attention={chat.attention}
            due={due}
            agentId={session.place.agentId}
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
        <Composer session={session} isBusy={isBusy} takesFocus={place !== null} />
      </div>
    </>
  );
}
