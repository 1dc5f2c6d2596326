import { expect, test } from "vitest";
import type { Step, StepMetrics } from "./queries";
import { causeOf, waterfallOf } from "./waterfall";

const timed = (id: string, metrics: Partial<StepMetrics> | null) => ({
  step: { id } as Step,
  metrics: metrics && {
    step_start_ns: null, llm_request_start_ns: null, step_ns: null, llm_request_ns: null, ttft_ns: null, tool_execution_ns: null,
    ...metrics,
  },
});

test("models come first, then their tools; the zero is the first step", () => {
  const { spans, length } = waterfallOf([
    timed("step-1", { step_start_ns: 1_000, llm_request_start_ns: 1_010, llm_request_ns: 50, tool_execution_ns: 30, step_ns: 100 }),
    timed("step-2", { step_start_ns: 1_100, llm_request_ns: 20, step_ns: 25 }),
  ]);
  expect(spans).toEqual([
    { stepId: "step-1", kind: "model", from: 10, length: 50 },
    { stepId: "step-1", kind: "tool", from: 60, length: 30 },
    { stepId: "step-2", kind: "model", from: 100, length: 20 },
  ]);
  expect(length).toBe(125);
});

test("steps without times take none", () => {
  expect(waterfallOf([timed("step-1", null), timed("step-2", {})])).toEqual({ spans: [], length: 0 });
});

test("a cause is said once", () => {
  expect(causeOf("llm_error", { message: "no such model", detail: "no such model", code: 404 })).toBe("llm_error: no such model");
  expect(causeOf(null, null)).toBe("");
});
