import { useInfiniteQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Place } from "../chat/place";

/** A place to which a conversation can go back. */
export interface Checkpoint {
  id: string;
  kind: "input" | "step" | "run" | null;
  run_id: string | null;
  step_id: string | null;
  message_id: string | null;
  created_at: string | null;
  /** What was said there by a person. */
  label: string;
  /** The versions of the blocks at that time, by the blocks' ids. */
  block_versions: Record<string, number>;
}

export interface Rewound {
  left_checkpoint_id: string | null;
  blocks: RewoundBlock[];
}

export interface RewoundBlock {
  block_id: string | null;
  label: string;
  version: number;
  outcome: "restored" | "left" | "missing" | null;
  scope: "conversation" | "agent" | "agents" | null;
}

const PAGE = 50;

/** Routes of a conversation and those of an agent's default one differ. */
function base(place: Place): string {
  return place.conversationId ? `/v1/conversations/${place.conversationId}` : `/v1/agents/${place.agentId}`;
}

export function checkpointsKey(place: Place): string[] {
  return ["checkpoints", place.agentId, place.conversationId ?? ""];
}

/** The checkpoints of a conversation, newest first. */
export function useCheckpoints(place: Place) {
  return useInfiniteQuery({
    queryKey: checkpointsKey(place),
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      api().get<Checkpoint[]>(`${base(place)}/checkpoints`, { query: { limit: PAGE, ...(pageParam && { after: pageParam }) } }),
    getNextPageParam: (last) => (last.length === PAGE ? last.at(-1)?.id : undefined),
  });
}

/** Goes back. What is left is kept: `left_checkpoint_id` leads there again. */
export function rewind(place: Place, checkpointId: string, restoreBlocks: boolean): Promise<Rewound> {
  const body = { checkpoint_id: checkpointId, restore_blocks: restoreBlocks };
  return api().post(`${base(place)}/rewind`, { body, maxRetries: 0 });
}

/** Makes an agent that begins at a checkpoint. Returns its id. */
export async function forkAgent(place: Place, checkpointId: string, name: string): Promise<string> {
  const path = place.conversationId ? `${base(place)}/fork-agent` : `${base(place)}/fork`;
  const body = { checkpoint_id: checkpointId, ...(name && { name }) };
  return (await api().post<{ agent: { id: string } }>(path, { body, maxRetries: 0 })).agent.id;
}

/** Makes a conversation of the same agent that begins at a checkpoint. Returns its id. */
export async function branch(place: Place, checkpointId: string): Promise<string> {
  const id = place.conversationId ?? "default";
  const query = { checkpoint_id: checkpointId, ...(!place.conversationId && { agent_id: place.agentId }) };
  return (await api().post<{ id: string }>(`/v1/conversations/${id}/fork`, { query, maxRetries: 0 })).id;
}
