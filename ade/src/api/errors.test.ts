import { expect, test } from "vitest";
import { sentenceOf } from "./errors";

test("a sentence is found wherever the API puts it", () => {
  expect(sentenceOf({ detail: "no such agent" })).toBe("no such agent");
  expect(sentenceOf({ detail: { code: "PENDING_APPROVAL", message: "it waits" } as unknown })).toBe("it waits");
  expect(sentenceOf({ error: { message: "the server failed", detail: "connection refused" } })).toBe("the server failed (connection refused)");
  expect(sentenceOf({ error: { message: "no credit" } })).toBe("no credit");
});

test("what says nothing is no sentence", () => {
  expect(sentenceOf({})).toBeNull();
  expect(sentenceOf(undefined)).toBeNull();
});
