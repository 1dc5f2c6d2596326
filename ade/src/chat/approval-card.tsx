import { Hand } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useRefusal } from "../shell/access-gate";
import { pretty, TextBlock } from "../ui/text-block";
import { clock } from "../ui/time";
import type { ToolPart } from "./parts";

interface Props {
  calls: readonly ToolPart[];
  /** Grows whenever the card wants the focus. */
  attention: number;
  /** When their rule answers in a person's place; null: never. */
  due: string | null;
  agentId: string;
  answer: (answers: { callId: string; approve: boolean; reason: string }[]) => void;
}

/** Asks whether calls may run. All that wait are answered at once. */
export function ApprovalCard({ calls, attention, due, agentId, answer }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const [denied, setDenied] = useState<ReadonlySet<string>>(new Set());
  const [reason, setReason] = useState("");
  const refusal = useRefusal("write_messages", agentId);
  useEffect(() => {
    // Never a button: who is typing must not allow anything by chance.
    if (attention) heading.current?.focus();
  }, [attention]);
  const decide = (deny: (call: ToolPart) => boolean): void => {
    if (refusal) return;
    answer(calls.map((call) => ({ callId: call.callId, approve: !deny(call), reason: deny(call) ? reason.trim() : "" })));
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    decide((call) => denied.has(call.callId));
  };
  const toggle = (callId: string): void => {
    const next = new Set(denied);
    if (!next.delete(callId)) next.add(callId);
    setDenied(next);
  };
  const isOne = calls.length === 1;
  return (
    <form className="approval" data-kind="approval" onSubmit={submit}>
      <h2 ref={heading} tabIndex={-1}>
        <Hand aria-hidden size={16} /> Needs you: {isOne ? `may ${calls[0]?.name} run?` : `may these ${calls.length} calls run?`}
      </h2>
      <div className="approval-calls">
        {calls.map((call) => (
          <div key={call.key}>
            {!isOne && (
              <label className="choice">
                <input type="checkbox" checked={!denied.has(call.callId)} onChange={() => toggle(call.callId)} />
                Allow <code>{call.name}</code>
              </label>
            )}
            <TextBlock label={isOne ? "Arguments" : `Arguments of ${call.name}`} text={pretty(call.arguments)} />
          </div>
        ))}
      </div>
      {due && <p className="muted small">If nobody answers, its rule does: <time dateTime={due}>{clock(due)}</time>.</p>}
      <div className="approval-end">
        <input
          aria-label="Reason of a denial, for the agent"
          placeholder="Reason, if you deny"
          value={reason}
          maxLength={2_000}
          onChange={(event) => setReason(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") event.preventDefault();
          }}
        />
        <button type="button" disabled={refusal !== null} title={refusal ?? undefined} onClick={() => decide(() => true)}>
          {isOne ? "Deny" : "Deny all"}
        </button>
        <button type="submit" className="primary" disabled={refusal !== null} title={refusal ?? undefined}>
          {isOne || !denied.size ? (isOne ? "Allow" : "Allow all") : "Answer"}
        </button>
      </div>
    </form>
  );
}
