import { expect, test } from "vitest";
import type { Part } from "../chat/parts";
import type { Checkpoint } from "./checkpoints";
import { checkpointOf, pointerTo } from "./places";

const place = (id: string, kind: Checkpoint["kind"], run: string, message: string | null = null): Checkpoint => ({
  id,
  kind,
  run_id: run,
  step_id: kind === "step" ? id : null,
  message_id: message,
  created_at: null,
  label: "",
  block_versions: {},
});

// Two runs, newest first; the second called a tool in its first step.
const CHECKPOINTS = [
  place("run-2", "run", "run-2"),
  place("step-2a", "step", "run-2"),
  place("message-2", "input", "run-2", "message-2"),
  place("run-1", "run", "run-1"),
  place("message-1", "input", "run-1", "message-1"),
];

const common = { key: "k", runId: "run-2", stepId: "step-2a", messageId: "message-2", date: "", speaker: "" };

test("before a message lies the end of the turn before it", () => {
  expect(checkpointOf({ before: "message-2" }, CHECKPOINTS)?.id).toBe("run-1");
});

test("before the first message lies nothing", () => {
  expect(checkpointOf({ before: "message-1" }, CHECKPOINTS)).toBeUndefined();
});

test("after a step lies its own place, after the last one the end of its run", () => {
  expect(checkpointOf({ at: "step-2a,run-2" }, CHECKPOINTS)?.id).toBe("step-2a");
  expect(checkpointOf({ at: "step-2b,run-2" }, CHECKPOINTS)?.id).toBe("run-2");
});

test("what is not among them is not found", () => {
  expect(checkpointOf({ at: "step-9,run-9" }, CHECKPOINTS)).toBeUndefined();
  expect(checkpointOf({ before: "message-9" }, CHECKPOINTS)).toBeUndefined();
});

test("a message of a person points before itself, an answer after", () => {
  const user: Part = { ...common, kind: "user", text: "hi", images: [] };
  const answer: Part = { ...common, kind: "assistant", text: "hello" };
  const note: Part = { ...common, kind: "note", label: "", text: "" };
  expect([user, answer, note].map(pointerTo)).toEqual([{ before: "message-2" }, { at: "step-2a,run-2" }, null]);
});
