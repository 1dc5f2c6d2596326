import { OctagonAlert } from "lucide-react";
import type { Problem } from "../api/errors";

interface Props {
  title: string;
  problem: Problem;
  retry?: () => void;
}

/** Says what went wrong, and offers to try again. */
export function ProblemBox({ title, problem, retry }: Props) {
  return (
    <div className="problem" role="alert">
      <OctagonAlert aria-hidden size={18} />
      <div>
        <strong>{title}</strong>
        <p>{problem.sentence}</p>
        {problem.trace && <p className="muted small">Trace <code>{problem.trace}</code></p>}
        {retry && <button type="button" onClick={() => retry()}>Retry</button>}
      </div>
    </div>
  );
}
