import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, type Caller } from "../api/client";

/** An agent, as far as lists and headings want to know. */
export interface Agent {
  id: string;
  name: string;
  model?: string | null;
  tags?: string[];
  created_at?: string | null;
  last_run_completion?: string | null;
  pending_approval?: object | null;
  /** Why its last turn ended. */
  last_stop_reason?: string | null;
}

const PAGE = 100;

/** Pages of agents that a text and a tag choose; for a limited key, the agents that it names. */
export function useAgents(caller: Caller, text: string, tag: string) {
  return useInfiniteQuery({
    queryKey: ["agents", text, tag],
    initialPageParam: "",
    queryFn: async ({ pageParam }) => {
      if (caller.agents) return namedAgents(Object.keys(caller.agents), text, tag);
      const query = {
        limit: PAGE,
        include: ["agent.tags", "agent.pending_approval"],
        ...(text && { query_text: text }),
        ...(tag && { tags: [tag] }),
        ...(pageParam && { after: pageParam }),
      };
      return (await api().agents.list(query as never)).items as unknown as Agent[];
    },
    getNextPageParam: (last) => (!caller.agents && last.length === PAGE ? last.at(-1)?.id : undefined),
    placeholderData: (before) => before,
  });
}

async function namedAgents(ids: string[], text: string, tag: string): Promise<Agent[]> {
  const found = await Promise.allSettled(ids.map((id) => api().agents.retrieve(id)));
  const agents = found.flatMap((each) => (each.status === "fulfilled" ? [each.value as unknown as Agent] : []));
  const part = text.toLowerCase();
  return agents.filter((agent) => agent.name.toLowerCase().includes(part) && (!tag || agent.tags?.includes(tag)));
}

const FAILURES = ["error", "llm_api_error", "invalid_llm_response", "invalid_tool_call", "no_tool_call", "insufficient_credits"];

/** Returns whether an agent's last turn failed. */
export function hasFailed({ last_stop_reason: reason }: Agent): boolean {
  return FAILURES.includes(reason ?? "");
}

export function useTags(caller: Caller) {
  return useQuery({
    queryKey: ["tags"],
    enabled: caller.rights.includes("read"),
    queryFn: async () => (await api().tags.list({ limit: 1000 })) as unknown as string[],
  });
}

export function useAgent(id: string) {
  return useQuery({
    queryKey: ["agent", id],
    queryFn: async () =>
      (await api().agents.retrieve(id, { include: ["agent.tags"] } as never)) as unknown as Agent,
  });
}

export function useModels() {
  return useQuery({ queryKey: ["models"], queryFn: () => api().models.list() });
}

export interface Template {
  id: string;
  name: string;
  latest_version: string;
  description: string | null;
  updated_at?: string;
}

export function useTemplates() {
  return useQuery({
    queryKey: ["templates"],
    queryFn: () => api().get<Template[]>("/v1/templates", { query: { limit: 1000 } }),
  });
}
