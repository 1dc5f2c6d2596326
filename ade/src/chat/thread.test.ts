import { describe, expect, it } from "vitest";
import { isWaiting, type Part } from "./parts";
import { EMPTY, extend, type Thread } from "./thread";
import type { WireMessage } from "./wire";

const RUN = { run_id: "run-1", step_id: "step-1" };
const said = (content: string): WireMessage => ({ ...RUN, message_type: "assistant_message", id: "m1", otid: "o1", content });
const piece = (fields: object): WireMessage => ({ ...RUN, message_type: "tool_call_message", id: "m2", otid: "o2", tool_calls: { tool_call_id: "c1", ...fields } });
const live = (...messages: WireMessage[]): Thread => messages.reduce((thread, message) => extend(thread, [message]), EMPTY);
const only = (thread: Thread): Part => {
  expect(thread.parts).toHaveLength(1);
  return thread.parts[0] as Part;
};

describe("pieces", () => {
  it("joins text by otid, and is equal to what is stored", () => {
    expect(live(said("It "), said("is done."))).toEqual(extend(EMPTY, [said("It is done.")]));
  });

  it("keeps parts of one message apart", () => {
    const thought: WireMessage = { ...RUN, message_type: "reasoning_message", id: "m1", otid: "o0", reasoning: "hm" };
    expect(live(thought, said("Yes")).parts.map((part) => part.kind)).toEqual(["thought", "assistant"]);
  });

  it("joins arguments of a call, whose name comes once", () => {
    const part = only(live(piece({ name: "order" }), piece({ arguments: '{"n":' }), piece({ arguments: "2}" })));
    expect(part).toMatchObject({ kind: "tool", name: "order", arguments: '{"n":2}', result: null });
  });

  it("takes back what an attempt said that was given up", () => {
    const gone = { message_type: "ping", attempt_abandoned: { step_id: "step-1", message_id: "m1" } };
    expect(live(said("never mi"), gone).parts).toEqual([]);
    const ofStep = { message_type: "ping", attempt_abandoned: { step_id: "step-1", message_id: null } };
    expect(live(said("a"), piece({ name: "x" }), ofStep).parts).toEqual([]);
  });

  it("does not change the thread it is given", () => {
    const before = live(said("It "));
    extend(before, [said("is")]);
    expect(only(before)).toMatchObject({ text: "It " });
  });
});

describe("tools", () => {
  const result = (step: string, id = "c1"): WireMessage => ({
    message_type: "tool_return_message",
    step_id: step,
    tool_returns: [{ tool_call_id: id, status: "success", tool_return: "2", stdout: ["a"], stderr: null }],
  });

  it("puts a result beside its call", () => {
    expect(only(live(piece({ name: "order" }), result("step-1")))).toMatchObject({
      result: { ok: true, text: "2", stdout: ["a"], stderr: [] },
    });
  });

  it("tells calls with one id apart by their steps", () => {
    const second = { ...piece({ name: "order" }), id: "m3", step_id: "step-2" };
    const parts = live(piece({ name: "order" }), second, result("step-1"), result("step-2")).parts;
    expect(parts.map((part) => part.kind === "tool" && part.result?.text)).toEqual(["2", "2"]);
  });

  it("is the same for several whole calls of one message", () => {
    const calls = { ...RUN, message_type: "tool_call_message", id: "m", tool_calls: [{ tool_call_id: "a", name: "x", arguments: "{}" }, { tool_call_id: "b", name: "y", arguments: "{}" }] };
    expect(live(calls).parts.map((part) => part.kind === "tool" && part.name)).toEqual(["x", "y"]);
  });

  it("shows what is no text as JSON", () => {
    const odd = { ...result("step-1"), tool_returns: [{ tool_call_id: "c1", tool_return: { a: 1 } }] };
    expect(only(live(piece({ name: "x" }), odd))).toMatchObject({ result: { text: '{\n  "a": 1\n}' } });
  });
});

describe("approvals", () => {
  const request = { ...piece({ name: "shout" }), message_type: "approval_request_message" };
  const answer = (approve: boolean, reason = ""): WireMessage => ({
    message_type: "approval_response_message",
    approvals: [{ type: "approval", tool_call_id: "c1", approve, reason }],
  });

  it("wait until somebody answers", () => {
    expect(isWaiting(only(live(request)))).toBe(true);
    expect(isWaiting(only(live(request, answer(true))))).toBe(false);
  });

  it("keep the reason of a denial", () => {
    expect(only(live(request, answer(false, "not now")))).toMatchObject({ decision: { approve: false, reason: "not now" } });
  });

  it("are answered by the newest request of an id", () => {
    const again = { ...request, id: "m9", step_id: "step-2" };
    const parts = live(request, answer(true), again, answer(false)).parts;
    expect(parts.map((part) => part.kind === "tool" && part.decision?.approve)).toEqual([true, false]);
  });

  it("take the result of a client's own tool", () => {
    const returned = { message_type: "approval_response_message", approvals: [{ type: "tool", tool_call_id: "c1", status: "error", tool_return: "no" }] };
    expect(only(live(request, returned))).toMatchObject({ result: { ok: false, text: "no" } });
  });
});

describe("people", () => {
  it("send texts and pictures", () => {
    const message: WireMessage = {
      message_type: "user_message",
      otid: "o",
      content: [
        { type: "text", text: "look" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
      ],
    };
    expect(only(live(message))).toMatchObject({ text: "look", images: [{ mediaType: "image/png", data: "AAAA" }] });
  });

  it("are not repeated when the stored message comes", () => {
    const mine = { message_type: "user_message", otid: "o", content: "hi" };
    expect(only(live(mine, { ...mine, id: "message-1" }))).toMatchObject({ text: "hi", messageId: "message-1" });
  });
});

it("leaves out what it does not know", () => {
  expect(live({ message_type: "news" }, { message_type: "stop_reason" }, {}).parts).toEqual([]);
});
