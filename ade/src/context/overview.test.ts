import { expect, test } from "vitest";
import { changesOf, type Overview, segmentsOf } from "./overview";

const OVERVIEW: Overview = {
  context_window_size_max: 1_000,
  context_window_size_current: 90,
  num_messages: 2,
  num_archival_memory: 3,
  num_recall_memory: 4,
  num_tokens_system: 10,
  system_prompt: "You are Ada.",
  num_tokens_functions_definitions: 20,
  functions_definitions: [{ function: { name: "search", description: "Finds.", parameters: {} } }],
  num_tokens_core_memory: 30,
  core_memory: "<human/>",
  num_tokens_external_memory_summary: 0,
  external_memory_summary: "",
  num_tokens_summary_memory: 0,
  summary_memory: null,
  num_tokens_messages: 30,
  messages: [
    { id: "message-1", role: "user", content: [{ type: "text", text: "hi" }], tool_calls: null, name: null },
    { id: "message-2", role: "assistant", content: [], tool_calls: [{ id: "call-1" }], name: null },
  ],
};

test("the segments stand in the order of the prompt, and what is empty is left out", () => {
  expect(segmentsOf(OVERVIEW).map(({ key, tokens }) => [key, tokens])).toEqual([
    ["system", 10],
    ["tools", 20],
    ["memory", 30],
    ["messages", 30],
  ]);
});

test("each part has its real text, calls of tools included", () => {
  const messages = segmentsOf(OVERVIEW).at(-1);
  expect(messages?.texts[0]).toEqual({ label: "user", text: "hi" });
  expect(messages?.texts[1]?.text).toContain("call-1");
});

test("what changed since the last look is named, with its growth", () => {
  const before = segmentsOf(OVERVIEW);
  const now = segmentsOf({ ...OVERVIEW, core_memory: "<human>Ada</human>", num_tokens_core_memory: 34 });
  expect([...changesOf(before, now)]).toEqual([["memory", { tokens: 4, isText: true }]]);
  expect([...changesOf(now, now)]).toEqual([]);
});
