import { expect, it } from "vitest";
import { blocksOf } from "./markdown-blocks";

it.each([
  ["one block", "a\nb", ["a\nb"]],
  ["paragraphs", "a\n\nb", ["a\n", "b"]],
  ["a fence with an empty line", "```\na\n\nb\n```\n\nc", ["```\na\n\nb\n```\n", "c"]],
  ["a fence that is open yet", "a\n\n```py\nx\n\ny", ["a\n", "```py\nx\n\ny"]],
  ["a longer fence around a shorter", "````\n```\n\na\n````\n\nb", ["````\n```\n\na\n````\n", "b"]],
  ["a loose list", "- a\n\n- b\n\n  c\n\nd", ["- a\n\n- b\n\n  c\n", "d"]],
])("%s", (_, text, blocks) => {
  expect(blocksOf(text)).toEqual(blocks);
});

it("loses nothing", () => {
  const text = "# a\n\nb\n\n```\nc\n\n```\n- d\n\n\ne";
  expect(blocksOf(text).join("\n")).toBe(text);
});
