import { expect, it } from "vitest";
import { type Action, begin, type Edit, next } from "./edit";

const v = (version: number, value: string) => ({ version, value });
const after = (...actions: Action[]): Edit => actions.reduce(next, begin(v(1, "old")));
const typed: Action = { type: "typed", text: "mine" };
const theirs = v(2, "theirs");

it("knows whether something is unsaved", () => {
  expect(after(typed).status).toBe("unsaved");
  expect(after(typed, { type: "typed", text: "old" }).status).toBe("clean");
});

it("takes a new version where nothing was typed", () => {
  expect(after({ type: "seen", now: theirs })).toEqual(begin(theirs));
});

it("never loses what was typed to a new version", () => {
  const edit = after(typed, { type: "seen", now: theirs });
  expect(edit).toMatchObject({ text: "mine", theirs, status: "conflict" });
  expect(next(edit, { type: "typed", text: "more" })).toMatchObject({ text: "more", status: "conflict" });
});

it("leaves an older version aside", () => {
  const edit = after({ type: "seen", now: theirs });
  expect(next(edit, { type: "seen", now: v(1, "old") })).toBe(edit);
});

it("shows theirs when a save is refused, and saves on top of them", () => {
  const edit = after(typed, { type: "saving" }, { type: "conflict", theirs });
  expect(edit).toMatchObject({ text: "mine", theirs, status: "conflict" });
  expect(next(edit, { type: "keep mine" })).toEqual({ base: theirs, text: "mine", theirs: null, status: "unsaved" });
  expect(next(edit, { type: "take theirs" })).toEqual(begin(theirs));
});

it("keeps what was typed while it was saved", () => {
  const edit = after(typed, { type: "saving" }, { type: "typed", text: "mine too" }, { type: "saved", now: v(2, "mine") });
  expect(edit).toMatchObject({ base: v(2, "mine"), text: "mine too", status: "unsaved" });
  expect(after(typed, { type: "saving" }, { type: "saved", now: v(2, "mine") }).status).toBe("saved");
});

it("is unsaved again when a save fails", () => {
  expect(after(typed, { type: "saving" }, { type: "refused" }).status).toBe("unsaved");
});
