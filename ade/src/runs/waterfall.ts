import type { TimedStep } from "./queries";

/** A piece of time of a run, in nanoseconds since its first step began. */
export interface Span {
  stepId: string;
  kind: "model" | "tool";
  from: number;
  length: number;
}

/** Returns when models and tools were at work; `length` is the whole. A step without times takes none. */
export function waterfallOf(steps: readonly TimedStep[]): { spans: Span[]; length: number } {
  const begins = steps.flatMap(({ metrics }) => (metrics?.step_start_ns ? [metrics.step_start_ns] : []));
  const zero = Math.min(...begins);
  const spans: Span[] = [];
  let length = 0;
  for (const { step, metrics } of steps) {
    if (!metrics?.step_start_ns) continue;
    const from = metrics.step_start_ns - zero;
    const model = metrics.llm_request_ns ?? 0;
    const asked = (metrics.llm_request_start_ns ?? metrics.step_start_ns) - zero;
    if (model) spans.push({ stepId: step.id, kind: "model", from: asked, length: model });
    if (metrics.tool_execution_ns) {
      spans.push({ stepId: step.id, kind: "tool", from: asked + model, length: metrics.tool_execution_ns });
    }
    length = Math.max(length, from + (metrics.step_ns ?? 0), ...spans.map((each) => each.from + each.length));
  }
  return { spans, length };
}

/** Returns an error's cause in words, of what a step knows of it. */
export function causeOf(errorType: string | null, data: Record<string, unknown> | null): string {
  const words = ["message", "detail", "error"].flatMap((name) => {
    const value = data?.[name];
    return typeof value === "string" && value ? [value] : [];
  });
  return [errorType, [...new Set(words)].join(" ")].filter(Boolean).join(": ");
}
