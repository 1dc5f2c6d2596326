import { Square } from "lucide-react";
import type { Session } from "./session";
import type { Turn } from "./turn";

const SENTENCES = {
  sending: "Sending ...",
  unsure: "Nobody answered. The message may have been sent; Retry does not send it twice.",
  queued: "Waits in line.",
  streaming: "Answering ...",
  detached: "Reconnecting ... The answer goes on at the server.",
  ended: "",
};

/** Where a turn stands, and what may be done about it. */
export function TurnLine({ turn, isFirst, session }: { turn: Turn; isFirst: boolean; session: Session }) {
  const isQueued = turn.phase === "queued" && !isFirst;
  const sentence = turn.isStopping ? "Stopping ..." : turn.phase === "queued" && isFirst ? "Thinking ..." : SENTENCES[turn.phase];
  return (
    <div className={`turn-line ${turn.phase}`} data-phase={turn.phase}>
      <span className="pulse" aria-hidden />
      <span role="status">{sentence}</span>
      <span className="spacer" />
      {turn.phase === "unsure" && (
        <>
          <button type="button" onClick={() => session.takeBack(turn)}>Edit again</button>
          <button type="button" className="primary" onClick={() => session.retry(turn)}>Retry</button>
        </>
      )}
      {isQueued && <button type="button" onClick={() => void session.goFirst(turn)}>Go first</button>}
      {turn.runId && turn.phase !== "ended" && (
        <button type="button" className="stop" aria-disabled={turn.isStopping} title="Stop (Ctrl+.)" onClick={() => void session.stop(turn)}>
          <Square aria-hidden size={12} /> Stop
        </button>
      )}
    </div>
  );
}
