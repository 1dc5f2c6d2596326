import { expect, test } from "vitest";
import { allPages } from "./pages";

const rows = (many: number): { id: string }[] => Array.from({ length: many }, (_, at) => ({ id: `row-${at}` }));

test("all pages are read, each after the one before", async () => {
  const stored = rows(250);
  const cursors: (string | undefined)[] = [];
  const found = await allPages(({ limit, after }) => {
    cursors.push(after);
    const from = after ? stored.findIndex(({ id }) => id === after) + 1 : 0;
    return Promise.resolve(stored.slice(from, from + limit));
  });
  expect(found).toEqual(stored);
  expect(cursors).toEqual([undefined, "row-99", "row-199"]);
});

test("a list without end has one", async () => {
  expect(await allPages(({ limit }) => Promise.resolve(rows(limit)))).toHaveLength(1_000);
});
