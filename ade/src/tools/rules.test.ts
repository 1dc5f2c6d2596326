import { expect, test } from "vitest";
import { graphOf, type Rule, sentenceOf } from "./rules";

const RULES: Rule[] = [
  { type: "run_first", tool_name: "look" },
  { type: "constrain_child_tools", tool_name: "look", children: ["ask", "order"] },
  { type: "exit_loop", tool_name: "order" },
  { type: "max_count_per_step", tool_name: "ask", max_count_limit: 2 },
];

test("rules are sentences", () => {
  expect(RULES.map(sentenceOf)).toEqual([
    "A turn begins with look.",
    "After look come only ask, order.",
    "order ends the turn.",
    "At most 2 calls of ask in a turn.",
  ]);
  const branch: Rule = { type: "conditional", tool_name: "look", child_output_mapping: { yes: "order" }, default_child: "ask" };
  expect(sentenceOf(branch)).toBe("After look comes order if it returned yes, else ask.");
});

test("the graph goes from the beginning to the end in layers", () => {
  const { nodes, edges, layers } = graphOf(RULES);
  const layer = Object.fromEntries(nodes.map((node) => [node.name, node.layer]));
  expect(layer).toEqual({ Begin: 0, look: 1, ask: 2, order: 2, End: 3 });
  expect(layers).toBe(4);
  expect(edges.map(({ from, to }) => `${from}>${to}`)).toEqual(["Begin>look", "look>ask", "look>order", "order>End"]);
  expect(nodes.filter((node) => node.layer === 2).map((node) => node.across)).toEqual([0.25, 0.75]);
});

test("rules without a way have no graph", () => {
  expect(graphOf([{ type: "max_count_per_step", tool_name: "ask", max_count_limit: 1 }]).layers).toBe(0);
});

test("a circle ends", () => {
  const circle = ["a", "b"].map((name): Rule => ({ type: "constrain_child_tools", tool_name: name, children: [name === "a" ? "b" : "a"] }));
  expect(graphOf(circle).nodes).toHaveLength(2);
});
