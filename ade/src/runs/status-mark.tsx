import { Ban, Check, CirclePause, Clock, LoaderCircle, OctagonAlert } from "lucide-react";
import type { Run } from "./queries";
import { statusOf } from "./run-words";

const ICONS = { created: Clock, running: LoaderCircle, completed: Check, failed: OctagonAlert, cancelled: Ban };

/** How a run stands: a picture and a word. */
export function StatusMark({ run }: { run: Run }) {
  const isWaiting = run.stop_reason === "requires_approval";
  const Icon = isWaiting ? CirclePause : ICONS[run.status ?? "completed"];
  return (
    <span className={`status ${isWaiting ? "waiting" : run.status}`} data-status={run.status}>
      <Icon aria-hidden size={14} /> {isWaiting ? "Needs you" : statusOf(run)}
    </span>
  );
}
