/** A piece of a run's time, as the API tells it; the one without a parent is the run. */
export interface TraceSpan {
  timestamp: string;
  span_id: string;
  parent_span_id: string;
  span_name: string;
  /** Nanoseconds. */
  duration: number;
  status_code: string;
  status_message: string;
  span_attributes: Record<string, string>;
}

/** When something was at work, in nanoseconds since the run began. */
export interface Bar {
  kind: "model" | "tool";
  label: string;
  from: number;
  length: number;
}

/** The times of a step. */
export interface StepTimes {
  from: number;
  length: number;
  attempts: number;
  bars: Bar[];
}

const KINDS: Record<string, Bar["kind"]> = { llm_request: "model", tool_execution: "tool" };

/** Returns when models and tools of each step were at work, by the steps' ids; `length` is that of the whole run. */
export function waterfallOf(spans: readonly TraceSpan[]): { steps: Map<string, StepTimes>; length: number } {
  const run = spans.find((span) => !span.parent_span_id);
  const zero = run?.timestamp ?? spans.map((span) => span.timestamp).sort()[0] ?? "";
  const steps = new Map<string, StepTimes>();
  let length = run?.duration ?? 0;
  for (const step of spans) {
    const id = step.span_attributes["step.id"];
    if (step.span_name !== "agent_step" || !id) continue;
    const from = since(zero, step.timestamp);
    const bars = spans.flatMap((span): Bar[] => {
      const kind = KINDS[span.span_name];
      if (span.parent_span_id !== step.span_id || !kind) return [];
      const label = span.span_attributes["tools"] ?? span.span_attributes["model"] ?? span.span_name;
      return [{ kind, label, from: since(zero, span.timestamp), length: span.duration }];
    });
    steps.set(id, { from, length: step.duration, attempts: Number(step.span_attributes["step.attempts"] ?? 1), bars });
    length = Math.max(length, from + step.duration);
  }
  return { steps, length };
}

/** Returns the nanoseconds between two moments. `Date` alone knows milliseconds, and no number holds those since 1970. */
function since(zero: string, moment: string): number {
  const [before, now] = [zero, moment].map((each) => ({
    seconds: Date.parse(each.replace(/\.\d+/, "")) / 1_000,
    fraction: Number((/\.(\d+)/.exec(each)?.[1] ?? "").padEnd(9, "0").slice(0, 9)),
  }));
  return before && now ? (now.seconds - before.seconds) * 1e9 + now.fraction - before.fraction : 0;
}

/** Returns an error's cause in words, of what a step knows of it. */
export function causeOf(errorType: string | null, data: Record<string, unknown> | null): string {
  const words = ["message", "detail", "error"].flatMap((name) => {
    const value = data?.[name];
    return typeof value === "string" && value ? [value] : [];
  });
  return [errorType, [...new Set(words)].join(" ")].filter(Boolean).join(": ");
}

/** Returns how many messages at the beginning of two requests are the same: as far as that a provider's cache can reach. */
export function sameMessages(before: unknown, now: unknown): { same: number; all: number } | null {
  const [old, fresh] = [before, now].map(messagesOf);
  if (!old || !fresh) return null;
  const other = fresh.findIndex((message, at) => JSON.stringify(message) !== JSON.stringify(old[at]));
  return { same: other < 0 ? fresh.length : other, all: fresh.length };
}

function messagesOf(request: unknown): unknown[] | null {
  const { messages, input } = (request ?? {}) as { messages?: unknown; input?: unknown };
  const found = messages ?? input;
  return Array.isArray(found) ? found : null;
}
