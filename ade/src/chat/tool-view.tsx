import { Check, Hand, LoaderCircle, OctagonAlert, Wrench, X } from "lucide-react";
import { useEffect, useState } from "react";
import { isWaiting, type ToolPart } from "./parts";

/** Beyond so many characters a text is folded. */
const LONG = 4_000;

type Status = "waiting" | "running" | "denied" | "failed" | "ok" | "unknown";
const LABELS: Record<Status, string> = {
  waiting: "Needs you",
  running: "Running",
  denied: "Denied",
  failed: "Failed",
  ok: "Done",
  unknown: "No result",
};
const ICONS = { waiting: Hand, running: LoaderCircle, denied: X, failed: OctagonAlert, ok: Check, unknown: Wrench };

function statusOf(call: ToolPart, isLive: boolean): Status {
  if (call.decision?.approve === false) return "denied";
  if (call.result) return call.result.ok ? "ok" : "failed";
  if (isWaiting(call)) return "waiting";
  return isLive ? "running" : "unknown";
}

/** A call of a tool: its arguments and its result, as they come. */
export function ToolView({ call, isLive }: { call: ToolPart; isLive: boolean }) {
  const status = statusOf(call, isLive);
  const Icon = ICONS[status];
  return (
    <details className={`tool ${status}`} data-kind="tool" data-status={status} open={status === "failed" || undefined}>
      <summary>
        <Wrench aria-hidden size={14} />
        <code className="tool-name">{call.name || "..."}</code>
        <code className="cut preview">{call.arguments === "{}" ? "" : call.arguments}</code>
        <span className="tool-status">
          {status === "running" && <Clock />} <Icon aria-hidden size={14} /> {LABELS[status]}
        </span>
      </summary>
      <div className="tool-body">
        <Block label="Arguments" text={pretty(call.arguments)} />
        {call.decision && !call.decision.approve && <Block label="Reason of the denial" text={call.decision.reason || "none given"} />}
        {call.result && <Block label={call.result.ok ? "Result" : "Error"} text={pretty(call.result.text)} />}
        {call.result && call.result.stdout.length > 0 && <Block label="Output" text={call.result.stdout.join("\n")} />}
        {call.result && call.result.stderr.length > 0 && <Block label="Error output" text={call.result.stderr.join("\n")} />}
      </div>
    </details>
  );
}

/** A text that is data, never markup. */
export function Block({ label, text }: { label: string; text: string }) {
  const [isWhole, setWhole] = useState(text.length <= LONG);
  return (
    <figure className="block">
      <figcaption className="muted small">{label}</figcaption>
      <pre tabIndex={0}>{isWhole ? text : `${text.slice(0, LONG)} ...`}</pre>
      {!isWhole && (
        <button type="button" onClick={() => setWhole(true)}>Show all {text.length.toLocaleString("en")} characters</button>
      )}
    </figure>
  );
}

/** Returns JSON with line breaks; as it is what is none, or none yet. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Clock() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return seconds ? <span className="muted">{seconds} s</span> : null;
}
