import { expect, test } from "vitest";
import { barsOf, limitsOf, OTHERS, type Row, sumsOf, timesOf } from "./usage";

const row = (day: string, model: string, cost: number): Row => ({
  group: { day, model },
  requests: 1,
  prompt_tokens: 10,
  completion_tokens: 2,
  cached_input_tokens: 0,
  total_tokens: 12,
  cost_usd: cost,
  unpriced_requests: 0,
});

const DAYS = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];

test("times are those of UTC, the last one not yet over", () => {
  expect(timesOf({ unit: "day", count: 2 }, Date.parse("2026-01-02T13:00:00Z"))).toEqual(["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"]);
});

test("a time without calls has an empty bar", () => {
  const { bars, groups } = barsOf([row("2026-01-02T00:00:00+00:00", "a", 1)], DAYS, "model", "cost_usd");
  expect(bars.map((bar) => bar.amount)).toEqual([0, 1]);
  expect(groups).toEqual(["a"]);
});

test("the smallest groups are summed up", () => {
  const rows = ["a", "b", "c", "d", "e", "f"].map((model, at) => row(DAYS[0]!, model, 10 - at));
  const { bars, groups } = barsOf(rows, DAYS, "model", "cost_usd");
  expect(groups).toEqual(["a", "b", "c", "d", OTHERS]);
  expect(bars[0]?.parts.at(-1)).toEqual({ name: OTHERS, amount: 11 });
});

test("sums of groups stand with the costliest first", () => {
  const sums = sumsOf([row(DAYS[0]!, "a", 1), row(DAYS[1]!, "a", 1), row(DAYS[0]!, "b", 3)], "model");
  expect(sums.map(({ name, cost_usd, requests }) => [name, cost_usd, requests])).toEqual([["b", 3, 1], ["a", 2, 2]]);
});

test("a budget needs a limit", () => {
  const fields = new FormData();
  expect(() => limitsOf(fields)).toThrow("at least one limit");
  fields.append("usd", "5");
  fields.append("tokens", "");
  expect(limitsOf(fields)).toEqual({ usd: 5 });
});
