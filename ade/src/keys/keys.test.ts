import { expect, test } from "vitest";
import { type ApiKey, bodyOf, isOwn } from "./keys";

function form(fields: [string, string][]): FormData {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  return data;
}

test("a key is limited only where something was chosen", () => {
  expect(bodyOf(form([["name", " ci "], ["role", "developer"], ["limit", ""], ["until", ""]]))).toEqual({ name: "ci", role: "developer" });
  const limited = bodyOf(form([["name", "bot"], ["role", "agent-only"], ["agents", "agent-1"], ["agents", "agent-2"], ["limit", "60"]]));
  expect(limited).toEqual({ name: "bot", role: "agent-only", agent_ids: ["agent-1", "agent-2"], requests_per_minute: 60 });
});

test("a key lasts to the end of its last day", () => {
  const { expires_at } = bodyOf(form([["name", "ci"], ["role", "admin"], ["until", "2999-01-02"]])) as { expires_at: string };
  expect(new Date(expires_at).getTime()).toBe(new Date("2999-01-02T23:59:59").getTime());
  expect(() => bodyOf(form([["name", "ci"], ["role", "admin"], ["until", "2001-01-01"]]))).toThrow("over already");
});

test("the key of this page is known by how it begins", () => {
  const key = { hint: "loci-key-abcd" } as ApiKey;
  expect(isOwn(key, "loci-key-abcdefgh")).toBe(true);
  expect(isOwn(key, "loci-key-zzzz")).toBe(false);
  expect(isOwn(key, null)).toBe(false);
});
