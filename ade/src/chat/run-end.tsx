import type { Ending } from "./turn";

const REASONS: Record<string, string> = {
  cancelled: "Cancelled",
  requires_approval: "",
  max_steps: "Stopped: the most steps of a turn were made.",
  error: "Failed",
};

/** How a turn ended: its tokens and its time, or why it failed. */
export function RunEnd({ ending, again }: { ending: Ending; again: () => void }) {
  const { problem, tokens, reason, seconds, steps } = ending;
  if (problem) {
    return (
      <div className="run-failed" role="alert">
        <strong>Failed.</strong> {problem.sentence}
        {problem.trace && <span className="muted small"> Trace <code>{problem.trace}</code></span>}
        <button type="button" onClick={again}>Send again</button>
      </div>
    );
  }
  const cached = tokens?.cached ? `, ${percent(tokens.cached, tokens.input)} cached` : "";
  const figures = [
    REASONS[reason],
    tokens && `${tokens.input.toLocaleString("en")} tokens in${cached}`,
    tokens && `${tokens.output.toLocaleString("en")} out`,
    steps > 1 && `${steps} steps`,
    `${seconds.toFixed(1)} s`,
  ];
  return <p className="run-end muted small">{figures.filter(Boolean).join(" · ")}</p>;
}

function percent(part: number, whole: number): string {
  return `${Math.round((part / Math.max(whole, 1)) * 100)} %`;
}
