import { expect, test } from "vitest";
import { objectOf, requirementLines, requirementsOf, sampleOf, variablesOf } from "./tools";

test("packages are read with and without versions, of both indexes", () => {
  const text = "humanize==4.0.0\n\n rich \nzod@4.0.0\n@scope/name\n@scope/name@1.0.0";
  const read = requirementsOf(text);
  expect(read).toEqual([
    { name: "humanize", version: "4.0.0" },
    { name: "rich" },
    { name: "zod", version: "4.0.0" },
    { name: "@scope/name" },
    { name: "@scope/name", version: "1.0.0" },
  ]);
  expect(requirementLines([{ name: "humanize", version: "4.0.0" }, { name: "rich", version: null }], "==")).toBe("humanize==4.0.0\nrich");
});

test("variables keep what stands after the first equals sign", () => {
  expect(variablesOf("KEY=a=b\nOTHER=\n")).toEqual({ KEY: "a=b", OTHER: "" });
  expect(() => variablesOf("KEY")).toThrow("NAME=value");
});

test("arguments to begin with follow the schema", () => {
  const parameters = {
    properties: { size: { enum: ["small", "large"] }, count: { type: "integer" }, note: { type: ["string", "null"] }, deep: { default: [1] } },
  };
  expect(JSON.parse(sampleOf({ parameters }))).toEqual({ size: "small", count: 0, note: "", deep: [1] });
  expect(sampleOf(null)).toBe("{}");
});

test("what is no object says what to do", () => {
  expect(objectOf(" ", "The arguments")).toEqual({});
  expect(() => objectOf("[1]", "The arguments")).toThrow("must be a JSON object");
  expect(() => objectOf("{", "The arguments")).toThrow("The arguments must be JSON");
});
