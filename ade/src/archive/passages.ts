import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

/** A text in an agent's long-term memory. */
export interface Passage {
  id: string;
  text: string;
  tags: string[] | null;
  created_at: string | null;
  /** How well it fits a search; null in a list. */
  scores: Scores | null;
}

export interface Scores {
  all: number;
  vector: number | null;
  text: number | null;
}

const MOST = 50;

interface Found {
  passage: Omit<Passage, "scores">;
  score: number;
  metadata?: { vector_score?: number | null; text_score?: number | null };
}

export interface Passages {
  passages: Passage[];
  /** Whether the search went by words alone, because no vectors could be had. */
  byWordsAlone: boolean;
}

/** What is wanted: the passages that fit a text best, or the newest; with a tag, those that have it. */
export interface Wish {
  query: string;
  tag: string;
  /** Whether the caller may search; else only words are looked for. */
  maySearch: boolean;
}

export function usePassages(agentId: string, wish: Wish) {
  return useQuery({
    queryKey: ["passages", agentId, wish],
    queryFn: () => ((wish.query || wish.tag) && wish.maySearch ? search(agentId, wish) : list(agentId, wish.query)),
    placeholderData: (before) => before,
  });
}

async function list(agentId: string, words: string): Promise<Passages> {
  const query = { limit: MOST, ascending: false, ...(words && { search: words }) };
  const passages = await api().agents.passages.list(agentId, query);
  return { passages: passages.map((each) => ({ ...(each as unknown as Passage), scores: null })), byWordsAlone: words !== "" };
}

async function search(agentId: string, { query, tag }: Wish): Promise<Passages> {
  const body = { agent_id: agentId, limit: MOST, ...(query && { query }), ...(tag && { tags: [tag] }) };
  const { data, response } = await api().passages.search(body).withResponse();
  const found = data as unknown as Found[];
  return {
    passages: found.map((each) => ({ ...each.passage, scores: query ? scoresOf(each) : null })),
    byWordsAlone: response.headers.has("x-loci-without-vectors"),
  };
}

function scoresOf({ score, metadata }: Found): Scores {
  return { all: score, vector: metadata?.vector_score ?? null, text: metadata?.text_score ?? null };
}

export interface NewPassage {
  text: string;
  tags: string[] | null;
  created_at?: string | null;
}

export function insert(agentId: string, { text, tags, created_at }: NewPassage): Promise<unknown> {
  const body = { text, ...(tags?.length && { tags }), ...(created_at && { created_at }) };
  return api().agents.passages.create(agentId, body, { maxRetries: 0 });
}

export function change(agentId: string, passageId: string, part: { text: string; tags: string[] }): Promise<unknown> {
  return api().patch(`/v1/agents/${agentId}/archival-memory/${passageId}`, { body: part, maxRetries: 0 });
}

export function remove(agentId: string, passageId: string): Promise<unknown> {
  return api().agents.passages.delete(passageId, { agent_id: agentId });
}

/** Returns the scores in words: of both kinds of search where both found it. */
export function scoreWords({ all, vector, text }: Scores): string {
  const parts = [vector !== null && `meaning ${vector.toFixed(2)}`, text !== null && `words ${text.toFixed(2)}`].filter(Boolean);
  return parts.length ? parts.join(", ") : `score ${all.toPrecision(3)}`;
}
