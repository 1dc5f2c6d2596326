import { expect, test } from "vitest";
import { scoreWords } from "./passages";

test("scores of both kinds are told, else the one that there is", () => {
  expect(scoreWords({ all: 0.03, vector: 0.443, text: 0.655 })).toBe("meaning 0.44, words 0.66");
  expect(scoreWords({ all: 0.03, vector: null, text: 0.655 })).toBe("words 0.66");
  expect(scoreWords({ all: 0.0327, vector: null, text: null })).toBe("score 0.0327");
});
