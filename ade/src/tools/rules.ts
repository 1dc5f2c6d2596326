/** A rule of an agent about its tools, as the API has it. */
export interface Rule {
  type: string;
  tool_name: string;
  children?: string[];
  max_count_limit?: number;
  child_output_mapping?: Record<string, string>;
  default_child?: string | null;
}

/** The kinds that a person makes here. `needs`: what a rule says besides its tool. */
export const RULE_KINDS: Record<string, { label: string; needs: "nothing" | "children" | "count" }> = {
  run_first: { label: "A turn begins with it", needs: "nothing" },
  constrain_child_tools: { label: "After it come only ...", needs: "children" },
  parent_last_tool: { label: "Only after it come ...", needs: "children" },
  max_count_per_step: { label: "At most so many calls in a turn", needs: "count" },
  exit_loop: { label: "It ends the turn", needs: "nothing" },
  continue_loop: { label: "After it the turn goes on", needs: "nothing" },
  required_before_exit: { label: "No turn ends without it", needs: "nothing" },
};

/** Returns a rule as a sentence. */
export function sentenceOf(rule: Rule): string {
  const children = rule.children?.join(", ") ?? "";
  switch (rule.type) {
    case "run_first":
      return `A turn begins with ${rule.tool_name}.`;
    case "constrain_child_tools":
      return `After ${rule.tool_name} come only ${children}.`;
    case "parent_last_tool":
      return `Only after ${rule.tool_name} come ${children}.`;
    case "conditional": {
      const branches = Object.entries(rule.child_output_mapping ?? {}).map(([output, tool]) => `${tool} if it returned ${output}`);
      return `After ${rule.tool_name} comes ${[...branches, rule.default_child ? `else ${rule.default_child}` : ""].filter(Boolean).join(", ")}.`;
    }
    case "max_count_per_step":
      return `At most ${rule.max_count_limit} calls of ${rule.tool_name} in a turn.`;
    case "exit_loop":
      return `${rule.tool_name} ends the turn.`;
    case "continue_loop":
      return `After ${rule.tool_name} the turn goes on.`;
    case "required_before_exit":
      return `No turn ends without ${rule.tool_name}.`;
    case "requires_approval":
      return `${rule.tool_name} waits for an approval.`;
    default:
      return `${rule.type}: ${rule.tool_name}`;
  }
}

export interface Node {
  name: string;
  layer: number;
  /** From 0 to 1, within its layer. */
  across: number;
}

export interface Edge {
  from: string;
  to: string;
  /** Whether it may be taken, or must. */
  isOptional: boolean;
}

export const BEGIN = "Begin";
export const END = "End";

/** Returns the ways that rules leave from the beginning of a turn to its end, laid out in layers. */
export function graphOf(rules: readonly Rule[]): { nodes: Node[]; edges: Edge[]; layers: number } {
  const edges = rules.flatMap(edgesOf);
  if (!edges.length) return { nodes: [], edges: [], layers: 0 };
  const layers = layersOf(edges);
  const rows = new Map<number, string[]>();
  for (const [name, layer] of layers) rows.set(layer, [...(rows.get(layer) ?? []), name]);
  const nodes = [...rows].flatMap(([layer, names]) =>
    names.map((name, at): Node => ({ name, layer, across: (at + 0.5) / names.length })),
  );
  return { nodes, edges, layers: Math.max(...rows.keys()) + 1 };
}

function edgesOf(rule: Rule): Edge[] {
  const from = rule.tool_name;
  switch (rule.type) {
    case "run_first":
      return [{ from: BEGIN, to: from, isOptional: false }];
    case "constrain_child_tools":
      return (rule.children ?? []).map((to) => ({ from, to, isOptional: (rule.children ?? []).length > 1 }));
    case "parent_last_tool":
      return (rule.children ?? []).map((to) => ({ from, to, isOptional: true }));
    case "conditional":
      return [...new Set([...Object.values(rule.child_output_mapping ?? {}), rule.default_child ?? ""])]
        .filter(Boolean)
        .map((to) => ({ from, to, isOptional: true }));
    case "exit_loop":
      return [{ from, to: END, isOptional: false }];
    case "required_before_exit":
      return [{ from, to: END, isOptional: true }];
    default:
      return [];
  }
}

/** Returns how many steps each name is from the beginning; what nothing leads to stands in the second layer. */
function layersOf(edges: readonly Edge[]): Map<string, number> {
  const names = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const layers = new Map([...names].map((name) => [name, name === BEGIN ? 0 : 1]));
  // As often as there are names: longer ways are circles.
  for (let round = 0; round < names.size; round += 1) {
    for (const { from, to } of edges) {
      const next = (layers.get(from) ?? 0) + 1;
      if (to !== BEGIN && next > (layers.get(to) ?? 0) && next <= names.size) layers.set(to, next);
    }
  }
  if (names.has(END)) layers.set(END, Math.max(...[...layers].filter(([name]) => name !== END).map(([, layer]) => layer)) + 1);
  return layers;
}
