import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

/** A text in an agent's long-term memory. `score`: how well it fits a search; null in a list. */
export interface Passage {
  id: string;
  text: string;
  tags: string[] | null;
  created_at: string | null;
  score: number | null;
}

const MOST = 50;

interface Found {
  passage: Omit<Passage, "score">;
  score: number;
}

export interface Passages {
  passages: Passage[];
  /** Whether the search went by words alone, because no vectors could be had. */
  byWordsAlone: boolean;
}

/** The newest passages of an agent, or those that fit a search best. */
export function usePassages(agentId: string, query: string) {
  return useQuery({
    queryKey: ["passages", agentId, query],
    queryFn: () => (query ? search(agentId, query) : newest(agentId)),
    placeholderData: (before) => before,
  });
}

async function newest(agentId: string): Promise<Passages> {
  const passages = await api().agents.passages.list(agentId, { limit: MOST, ascending: false });
  return { passages: passages.map((each) => ({ ...(each as unknown as Passage), score: null })), byWordsAlone: false };
}

async function search(agentId: string, query: string): Promise<Passages> {
  const { data, response } = await api()
    .passages.search({ query, agent_id: agentId, limit: MOST })
    .withResponse();
  const found = data as unknown as Found[];
  return {
    passages: found.map(({ passage, score }) => ({ ...passage, score })),
    byWordsAlone: response.headers.has("x-loci-without-vectors"),
  };
}

export function insert(agentId: string, text: string, tags: string[] | null): Promise<unknown> {
  return api().agents.passages.create(agentId, { text, ...(tags?.length && { tags }) }, { maxRetries: 0 });
}

export function remove(agentId: string, passageId: string): Promise<unknown> {
  return api().agents.passages.delete(passageId, { agent_id: agentId });
}
