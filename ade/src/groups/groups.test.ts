import { expect, test } from "vitest";
import { bodyOf } from "./groups";

function fieldsOf(entries: [string, string][]): FormData {
  const fields = new FormData();
  entries.forEach(([name, value]) => fields.append(name, value));
  return fields;
}

test("a group keeps the order of its agents, and settings that are left empty are none", () => {
  const fields = fieldsOf([["kind", "round_robin"], ["description", " Clerks "], ["members", "agent-2"], ["members", "agent-1"], ["max_turns", ""]]);
  expect(bodyOf(fields)).toEqual({
    description: "Clerks",
    agent_ids: ["agent-2", "agent-1"],
    manager_config: { manager_type: "round_robin", max_turns: null },
  });
});

test("a group that is led has its leader and its settings", () => {
  const fields = fieldsOf([["kind", "dynamic"], ["members", "agent-1"], ["manager", "agent-3"], ["max_turns", "4"], ["termination_token", "END"]]);
  expect(bodyOf(fields)).toMatchObject({
    manager_config: { manager_type: "dynamic", manager_agent_id: "agent-3", max_turns: 4, termination_token: "END" },
  });
});

test("what is missing is said before anything is sent", () => {
  expect(() => bodyOf(fieldsOf([["kind", "round_robin"]]))).toThrow("at least one agent");
  expect(() => bodyOf(fieldsOf([["kind", "supervisor"], ["members", "agent-1"]]))).toThrow("that leads");
  expect(() => bodyOf(fieldsOf([["kind", "supervisor"], ["members", "agent-1"], ["manager", "agent-1"]]))).toThrow("not one of the others");
});
