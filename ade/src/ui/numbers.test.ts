import { expect, test } from "vitest";
import { dollars, duration, percent, size } from "./numbers";

test("amounts have as many places as they need", () => {
  expect([0, 0.00042, 1.5].map(dollars)).toEqual(["$0", "$0.00042", "$1.50"]);
});

test("durations are read in the unit that fits", () => {
  expect([0, 2_400_000, 2_100_000_000, 200_000_000_000].map(duration)).toEqual(["0 ms", "2 ms", "2.1 s", "3 min 20 s"]);
  expect(duration(null)).toBe("");
});

test("what is little is not nothing", () => {
  expect([percent(0, 10), percent(1, 1_000), percent(1, 2), percent(0, 0)]).toEqual(["0 %", "<1 %", "50 %", "0 %"]);
});

test("sizes", () => {
  expect([12, 1_200, 25_000_000].map(size)).toEqual(["12 B", "1.2 kB", "25.0 MB"]);
});
