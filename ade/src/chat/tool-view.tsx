import { Check, Hand, LoaderCircle, OctagonAlert, Wrench, X } from "lucide-react";
import { useEffect, useState } from "react";
import { pretty, TextBlock } from "../ui/text-block";
import { isWaiting, type ToolPart } from "./parts";

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
        <TextBlock label="Arguments" text={pretty(call.arguments)} />
        {call.decision && !call.decision.approve && <TextBlock label="Reason of the denial" text={call.decision.reason || "none given"} />}
        {call.result && <TextBlock label={call.result.ok ? "Result" : "Error"} text={pretty(call.result.text)} />}
        {call.result && call.result.stdout.length > 0 && <TextBlock label="Output" text={call.result.stdout.join("\n")} />}
        {call.result && call.result.stderr.length > 0 && <TextBlock label="Error output" text={call.result.stderr.join("\n")} />}
      </div>
    </details>
  );
}

function Clock() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return seconds ? <span className="muted">{seconds} s</span> : null;
}
