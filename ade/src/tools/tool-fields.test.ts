import { expect, test } from "vitest";
import { bodyOf, changesOf, fieldsOf, fromDraft, toDraft } from "./tool-fields";
import type { Tool } from "./tools";

const TOOL = { source_type: "json", source_code: "def f(): ...", tags: ["a"], return_char_limit: 100 } as unknown as Tool;

test("whatever is no script is Python", () => {
  expect(fieldsOf(TOOL).language).toBe("python");
  expect(fieldsOf({ ...TOOL, source_type: "typescript" }).language).toBe("typescript");
});

test("a draft holds what differs, and no secret", () => {
  const base = fieldsOf(TOOL);
  const draft = toDraft({ ...base, code: "def g(): ...", asks: true, variables: "KEY=s3cret" }, base);
  expect(draft).toEqual({ code: "def g(): ...", asks: "true" });
  expect({ ...base, ...fromDraft(draft) }).toEqual({ ...base, code: "def g(): ...", asks: true });
});

test("secrets are sent only where they were typed", () => {
  const fields = fieldsOf(TOOL);
  expect(bodyOf(fields, false)).not.toHaveProperty("environment");
  expect(bodyOf({ ...fields, variables: "KEY=v" }, false)).toMatchObject({ environment: { KEY: "v" } });
});

test("an update sends what differs, the source with its language", () => {
  const base = fieldsOf(TOOL);
  expect(changesOf({ ...base, tags: "b" }, base, false)).toEqual({ tags: ["b"] });
  expect(changesOf({ ...base, code: "def g(): ..." }, base, false)).toEqual({ source_code: "def g(): ...", source_type: "python" });
  expect(changesOf({ ...base, variables: "KEY=v" }, base, false)).toEqual({ environment: { KEY: "v" } });
});

test("of a tool of somebody else only its settings are sent", () => {
  expect(Object.keys(bodyOf(fieldsOf(TOOL), true)).sort()).toEqual(["default_requires_approval", "return_char_limit", "tags"]);
});
