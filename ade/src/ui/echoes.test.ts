import { expect, it } from "vitest";
import { Echoes } from "./echoes";

function told(...values: string[]): Echoes {
  const echoes = new Echoes();
  values.forEach((value) => echoes.tell(value));
  return echoes;
}

it("takes nothing back that was typed since", () => {
  const echoes = told("", "def f");
  expect([echoes.isOwn(""), echoes.isOwn("def f")]).toEqual([true, true]);
});

it("knows the last of several that were handed back at once", () => {
  const echoes = told("a", "ab", "abc");
  expect([echoes.isOwn("abc"), echoes.isOwn("ab")]).toEqual([true, false]);
});

it("takes what its owner made up", () => {
  const echoes = told("a");
  expect([echoes.isOwn("A"), echoes.isOwn("a")]).toEqual([false, false]);
});
