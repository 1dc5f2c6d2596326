import { expect, it } from "vitest";
import { History } from "./history";
import type { WireMessage } from "./wire";

const message = (n: number, run_id = "old"): WireMessage => ({
  message_type: n % 2 ? "assistant_message" : "user_message",
  id: `message-${n}`,
  otid: `otid-${n}`,
  run_id,
  content: `text ${n}`,
});
const range = (from: number, to: number): WireMessage[] =>
  Array.from({ length: to - from }, (_, at) => message(from + at));
const texts = (history: History, turns: Parameters<History["fold"]>[0] = []): string[] =>
  history.fold(turns).parts.map((part) => ("text" in part ? part.text : ""));

it("joins pages without repeating what they share", () => {
  const history = new History(4);
  history.merge(range(4, 8));
  expect(history.hasOlder).toBe(true);
  history.prepend(range(1, 5));
  history.merge(range(6, 10));
  expect(texts(history)).toEqual(range(1, 10).map((each) => each.content));
});

it("ends at the first message", () => {
  const history = new History(4);
  history.merge(range(2, 6));
  history.prepend(range(0, 2));
  expect(history.hasOlder).toBe(false);
});

it("begins anew where much was said meanwhile", () => {
  const history = new History(4);
  history.merge(range(0, 4));
  history.merge(range(10, 14));
  expect(texts(history)).toEqual(range(10, 14).map((each) => each.content));
  expect(history.hasOlder).toBe(true);
});

it("draws a run that is followed from its stream alone, but for what it was sent", () => {
  const history = new History(50);
  history.merge([...range(0, 2), message(2, "run"), message(3, "run")]);
  const turn = { runId: "run", input: message(2), chunks: [{ ...message(3, "run"), content: "te" }] };
  expect(texts(history, [turn])).toEqual(["text 0", "text 1", "text 2", "te"]);
});

it("shows at once what is sent", () => {
  const history = new History(50);
  const turn = { runId: "", input: message(0), chunks: [] };
  expect(texts(history, [turn])).toEqual(["text 0"]);
});

it("keeps what a cancelled turn said, until it is stored", () => {
  const history = new History(50);
  history.merge([message(0, "run")]);
  const chunk = { ...message(1, "run"), seq_id: 4 };
  history.keep({ runId: "run", input: message(0), chunks: [chunk] });
  expect(texts(history)).toEqual(["text 0", "text 1"]);
  history.merge([message(0, "run")]);
  expect(texts(history)).toEqual(["text 0", "text 1"]);
  history.merge([message(0, "run"), message(1, "run")]);
  expect(texts(history)).toEqual(["text 0", "text 1"]);
});

it("knows what a run was sent", () => {
  const history = new History(50);
  history.merge([message(0, "run"), message(1, "run")]);
  expect(history.sentTo("run")?.content).toBe("text 0");
  expect(history.sentTo("other")).toBeUndefined();
});

it("joins an earlier passage that has grown as far as the newest", () => {
  const history = new History(4);
  history.merge(range(20, 24));
  const passage = new History(4);
  passage.merge(range(8, 12));
  passage.append(range(12, 16));
  expect([passage.hasOlder, passage.hasNewer, history.join(passage)]).toEqual([true, true, false]);
  passage.append(range(16, 22));
  expect(history.join(passage)).toBe(true);
  expect(texts(history)).toEqual(range(8, 24).map((each) => each.content));
  expect(history.hasOlder).toBe(true);
});
