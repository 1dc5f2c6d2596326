import { APIConnectionError, APIError } from "@letta-ai/letta-client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Open, Turn } from "./turn";
import type { WireMessage } from "./wire";

const piece = (seq_id: number, content: string): WireMessage => ({
  message_type: "assistant_message",
  otid: "o",
  run_id: "run-1",
  seq_id,
  content,
});
const PING: WireMessage = { message_type: "ping", run_id: "run-1", seq_id: 1 };
const STOP: WireMessage = { message_type: "stop_reason", stop_reason: "end_turn" };
const USAGE: WireMessage = { message_type: "usage_statistics", prompt_tokens: 7, completion_tokens: 2, step_count: 1 };

type Script = (WireMessage | Error)[];

async function* told(script: Script): AsyncGenerator<WireMessage> {
  for (const each of script) {
    if (each instanceof Error) throw each;
    yield each;
  }
}

/** Follows a turn whose streams say, one after the other, what the scripts say. */
function follow(...scripts: Script[]) {
  const asked: [after: number, runId: string][] = [];
  const open: Open = async (after, runId) => {
    const script = scripts[asked.push([after, runId]) - 1] ?? [];
    if (script[0] instanceof Error) throw script[0];
    return told(script);
  };
  const refolds: string[] = [];
  const turn: Turn = new Turn({ otid: "mine" }, open, {
    piece: () => undefined,
    change: (refold) => refold && refolds.push(text(turn)),
    end: () => undefined,
  });
  return { turn, asked, refolds, done: turn.follow() };
}

const text = (turn: Turn): string => turn.chunks.map((chunk) => chunk.content).join("");
const broken = (): Error => new APIConnectionError({ message: "gone" });

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("follows a turn to its end", async () => {
  const { turn, done, asked } = follow([PING, piece(2, "It "), piece(3, "is."), STOP, USAGE]);
  await done;
  expect(text(turn)).toBe("It is.");
  expect(turn).toMatchObject({ phase: "ended", runId: "run-1" });
  expect(turn.ending).toMatchObject({ reason: "end_turn", tokens: { input: 7, output: 2, cached: null }, steps: 1 });
  expect(asked).toEqual([[0, ""]]);
});

it("goes on behind the last number that is complete", async () => {
  const { turn, done, asked, refolds } = follow(
    [PING, piece(2, "a"), piece(3, "b"), piece(3, "c"), broken()],
    [piece(3, "b"), piece(3, "c"), piece(4, "d"), STOP],
  );
  await vi.runAllTimersAsync();
  await done;
  expect(asked).toEqual([
    [0, ""],
    [2, "run-1"],
  ]);
  expect(refolds).toEqual(["a"]);
  expect(text(turn)).toBe("abcd");
});

it("waits longer from time to time where nobody answers", async () => {
  const { turn, asked, done } = follow([PING, piece(2, "a"), broken()], [broken()], [broken()], [piece(2, "a"), STOP]);
  await vi.advanceTimersByTimeAsync(0);
  expect(turn.phase).toBe("detached");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(3);
  await vi.runAllTimersAsync();
  await done;
  expect(text(turn)).toBe("a");
});

it("takes an end without a reason for a break", async () => {
  const { turn, done } = follow([PING, piece(2, "a")], [piece(2, "a"), STOP]);
  await vi.runAllTimersAsync();
  await done;
  expect(turn.ending?.reason).toBe("end_turn");
});

it("does not know whether it was sent where nobody answered, and asks again with the same", async () => {
  const { turn, asked, done } = follow([broken()], [PING, STOP]);
  await done;
  expect(turn).toMatchObject({ phase: "unsure", ending: null });
  await turn.follow();
  expect(turn.phase).toBe("ended");
  expect(asked).toEqual([
    [0, ""],
    [0, ""],
  ]);
});

it("says why a turn failed", async () => {
  const event = { message_type: "error_message", message: "The model failed", detail: "status=400" };
  const failed = new APIError(undefined, event, undefined, undefined);
  const { turn, done } = follow([PING, { message_type: "stop_reason", stop_reason: "llm_api_error" }, failed]);
  await done;
  expect(turn.ending).toMatchObject({ reason: "llm_api_error", problem: { sentence: "The model failed (status=400)" } });
});

it("ends at a refusal", async () => {
  const refused = APIError.generate(409, { detail: "busy" }, undefined, new Headers());
  const { turn, done } = follow([refused]);
  await done;
  expect(turn.ending).toMatchObject({ problem: { sentence: "busy", status: 409 } });
});

it("leaves the rest to what is stored where the stream is no longer kept", async () => {
  const gone = APIError.generate(410, { detail: "gone" }, undefined, new Headers());
  const { turn, done } = follow([PING, piece(2, "a"), broken()], [gone]);
  await vi.runAllTimersAsync();
  await done;
  expect(turn.ending).toMatchObject({ reason: "end_turn", problem: null });
});
