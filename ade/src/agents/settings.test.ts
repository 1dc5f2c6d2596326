import { expect, test } from "vitest";
import { changesOf, settingsOf } from "./settings";

const BASE = settingsOf({ name: "Ada", model: "loci/demo", system: "Be kind.", tags: ["b", "a"], description: null });

test("only what was changed is sent", () => {
  const mine = { ...BASE, name: "Eve", tags: ["b", "a"] };
  expect(changesOf(BASE, mine, BASE)).toEqual({ changes: { name: "Eve" }, clashes: [] });
});

test("what somebody else changed of the same is named; the rest stays theirs", () => {
  const mine = { ...BASE, system: "Be brief." };
  const theirs = { ...BASE, system: "Be long.", name: "Eve" };
  expect(changesOf(BASE, mine, theirs)).toEqual({ changes: { system: "Be brief." }, clashes: ["the instructions"] });
});

test("two who want the same do not clash", () => {
  const same = { ...BASE, system: "Be brief." };
  expect(changesOf(BASE, same, same).clashes).toEqual([]);
});
