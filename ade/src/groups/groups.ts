import { useQueries, useQuery } from "@tanstack/react-query";
import type { Agent } from "../agents/queries";
import { api } from "../api/client";
import type { Block } from "../memory/blocks";
import { textOf } from "../ui/field";

/** Agents that belong together, and the blocks that they share. */
export interface Group {
  id: string;
  description: string;
  manager_type: string;
  manager_agent_id: string | null;
  agent_ids: string[];
  shared_block_ids: string[];
  max_turns: number | null;
  termination_token: string | null;
  sleeptime_agent_frequency: number | null;
  turns_counter: number | null;
}

type Setting = "max_turns" | "termination_token" | "sleeptime_agent_frequency";

interface Kind {
  label: string;
  sentence: string;
  hasManager: boolean;
  settings: Setting[];
}

/** The kinds of groups that can be made here, by the names that the API has for them. */
export const KINDS: Record<string, Kind> = {
  round_robin: { label: "Round robin", sentence: "Each agent speaks in its turn.", hasManager: false, settings: ["max_turns"] },
  supervisor: { label: "Supervisor", sentence: "One agent asks the others.", hasManager: true, settings: [] },
  dynamic: { label: "Dynamic", sentence: "One agent says who speaks next.", hasManager: true, settings: ["max_turns", "termination_token"] },
  swarm: { label: "Swarm", sentence: "Whoever speaks may hand over to another.", hasManager: false, settings: [] },
  sleeptime: { label: "Sleep-time", sentence: "The others tend one agent's memory between its turns.", hasManager: true, settings: ["sleeptime_agent_frequency"] },
};

export const SETTINGS: Record<Setting, { label: string; note: string; isText: boolean }> = {
  max_turns: { label: "Most turns", note: "Left empty, a round ends by itself.", isText: false },
  termination_token: { label: "Word that ends it", note: "Left empty, DONE!", isText: true },
  sleeptime_agent_frequency: { label: "After so many turns", note: "Left empty, after each.", isText: false },
};

export function kindWords(type: string): string {
  return KINDS[type]?.label ?? type.replaceAll("_", " ");
}

export function useGroups() {
  return useQuery({
    queryKey: ["groups"],
    queryFn: () => api().get<Group[]>("/v1/groups/", { query: { limit: 200, show_hidden_groups: true } }),
  });
}

/** The agents of these ids by their ids; those that are gone are left out. */
export function useMembers(ids: readonly string[]): Map<string, Agent> {
  return useQueries({
    queries: ids.map((id) => ({
      queryKey: ["agent", id],
      queryFn: async () => (await api().agents.retrieve(id, { include: ["agent.tags"] } as never)) as unknown as Agent,
    })),
    combine: (results) => new Map(results.flatMap(({ data }) => (data ? [[data.id, data] as const] : []))),
  });
}

export function useSharedBlocks(ids: readonly string[]) {
  return useQuery({
    queryKey: ["shared-blocks", ...ids],
    queryFn: () => Promise.all(ids.map(async (id) => (await api().blocks.retrieve(id)) as unknown as Block)),
  });
}

/** Blocks whose label has a text in it. */
export function useBlocksCalled(text: string) {
  return useQuery({
    queryKey: ["blocks-called", text],
    enabled: text !== "",
    queryFn: async () => (await api().blocks.list({ label_search: text, limit: 20 })).items as unknown as Block[],
  });
}

/** Returns the body that makes or changes a group of what a form says. Throws what is missing. */
export function bodyOf(fields: FormData): object {
  const type = textOf(fields, "kind");
  const kind = KINDS[type];
  const members = fields.getAll("members").map(String);
  const manager = textOf(fields, "manager");
  if (members.length === 0) throw new Error("Choose at least one agent.");
  if (kind?.hasManager && !manager) throw new Error("Choose the agent that leads.");
  if (kind?.hasManager && members.includes(manager)) throw new Error("The agent that leads is not one of the others. Remove it from one of both.");
  const settings = (kind?.settings ?? []).map((name) => {
    const text = textOf(fields, name);
    return [name, text === "" ? null : SETTINGS[name].isText ? text : Number(text)] as const;
  });
  return {
    description: textOf(fields, "description"),
    agent_ids: members,
    manager_config: { manager_type: type, ...(kind?.hasManager && { manager_agent_id: manager }), ...Object.fromEntries(settings) },
  };
}
