import { expect, test } from "vitest";
import { bodyOf, moment, wordsOf } from "./schedules";

function form(fields: Record<string, string>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

test("a schedule is said in words", () => {
  expect(wordsOf({ type: "recurring", cron_expression: "0 9 * * MON-FRI" })).toBe("workdays at 9");
  expect(wordsOf({ type: "recurring", cron_expression: "5 4 * * *" })).toBe("5 4 * * *");
});

test("the form becomes what the API takes", () => {
  expect(bodyOf(form({ text: " hi ", kind: "recurring", cron: "0 * * * *" }))).toEqual({
    messages: [{ role: "user", content: "hi" }],
    schedule: { type: "recurring", cron_expression: "0 * * * *" },
  });
  const at = "2030-01-02T03:04";
  expect(bodyOf(form({ text: "hi", kind: "one-time", at }))).toMatchObject({
    schedule: { type: "one-time", scheduled_at: new Date(at).getTime() },
  });
  expect(() => bodyOf(form({ text: "hi", kind: "one-time", at: "" }))).toThrow("Choose a day");
});

test("a moment is told in the agent's zone, too", () => {
  const told = moment("2030-01-02T03:04:00Z", "Asia/Tokyo");
  expect(told).toContain("12:04");
  expect(told).toContain("Asia/Tokyo");
  expect(moment("2030-01-02T03:04:00Z", "No/Where")).toContain("2030");
});
