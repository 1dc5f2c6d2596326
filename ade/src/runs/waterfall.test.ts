import { expect, test } from "vitest";
import { causeOf, sameMessages, type TraceSpan, waterfallOf } from "./waterfall";

const span = (name: string, id: string, parent: string, at: string, duration: number, attributes: Record<string, string> = {}): TraceSpan => ({
  timestamp: `2026-01-01T00:00:${at}+00:00`,
  span_id: id,
  parent_span_id: parent,
  span_name: name,
  duration,
  status_code: "Ok",
  status_message: "",
  span_attributes: attributes,
});

test("models and tools stand within their step, counted from the beginning of the run", () => {
  const { steps, length } = waterfallOf([
    span("run", "r", "", "01.000000", 3e9),
    span("agent_step", "s", "r", "02.000500", 5_000_000, { "step.id": "step-1", "step.attempts": "2" }),
    span("llm_request", "l", "s", "02.000500", 3_000_000, { model: "loci/demo" }),
    span("tool_execution", "t", "s", "02.003500", 2_000_000, { tools: "shout" }),
    span("llm_request", "x", "other", "02.000000", 1),
  ]);
  expect(length).toBe(3e9);
  expect(steps.get("step-1")).toEqual({
    from: 1_000_500_000,
    length: 5_000_000,
    attempts: 2,
    bars: [
      { kind: "model", label: "loci/demo", from: 1_000_500_000, length: 3_000_000 },
      { kind: "tool", label: "shout", from: 1_003_500_000, length: 2_000_000 },
    ],
  });
});

test("a trace without a step has none", () => {
  expect(waterfallOf([]).steps.size).toBe(0);
});

test("a cause is said once", () => {
  expect(causeOf("llm_error", { message: "no such model", detail: "no such model", code: 404 })).toBe("llm_error: no such model");
  expect(causeOf(null, null)).toBe("");
});

test("requests are the same up to the first message that differs", () => {
  const before = { messages: [{ role: "system" }, { role: "user", content: "hi" }] };
  const now = { messages: [{ role: "system" }, { role: "user", content: "hi" }, { role: "tool" }] };
  expect(sameMessages(before, now)).toEqual({ same: 2, all: 3 });
  expect(sameMessages({ messages: [{ role: "system", content: "old" }] }, now)).toEqual({ same: 0, all: 3 });
  expect(sameMessages(null, now)).toBeNull();
});
