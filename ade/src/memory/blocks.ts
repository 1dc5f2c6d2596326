import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Version } from "./edit";

/** A block of an agent. */
export interface Block {
  id: string;
  label: string;
  value: string;
  limit: number;
  description?: string | null;
  read_only?: boolean | null;
}

/** A version of a block, and who made it. */
export interface BlockVersion extends Version {
  operation: string;
  actor_id: string | null;
  agent_id: string | null;
  run_id: string | null;
  created_at: string;
  restored_version: number | null;
}

const POLL_MILLISECONDS = 3_000;
/** So many versions of a block are listed. */
export const VERSIONS = 100;

/** The blocks of an agent, asked for again and again while they are shown: the agent changes them itself. */
export function useBlocks(agentId: string) {
  return useQuery({
    queryKey: ["blocks", agentId],
    refetchInterval: POLL_MILLISECONDS,
    queryFn: async () => (await api().agents.blocks.list(agentId, { limit: 100 })).items as unknown as Block[],
  });
}

/** Returns the newest version of a block. */
export async function newest(blockId: string): Promise<Version> {
  const { data, response } = await api().blocks.retrieve(blockId).withResponse();
  return { value: data.value, version: versionOf(response) };
}

/** Stores a value on top of a version. Throws a 409 where another is the newest. */
export async function save(blockId: string, value: string, base: number): Promise<Version> {
  const options = { headers: { "If-Match": `"${base}"` }, maxRetries: 0 };
  const { data, response } = await api().blocks.update(blockId, { value }, options).withResponse();
  const version = versionOf(response);
  return version ? { value: data.value, version } : newest(blockId);
}

function versionOf(response: Response): number {
  return Number(response.headers.get("etag")?.replace(/\D/g, "") ?? 0);
}

type Journey = "undo" | "redo" | "restore";

/** Goes back or forth in the history. All of it makes a new version. */
export function travel(blockId: string, journey: Journey, expected: number, version?: number): Promise<Version> {
  const body = { expected_version: expected, ...(version !== undefined && { version }) };
  return api().post<Version>(`/v1/blocks/${blockId}/${journey}`, { body, maxRetries: 0 });
}

export function useVersions(blockId: string, newestVersion: number) {
  return useQuery({
    queryKey: ["versions", blockId, newestVersion],
    queryFn: () => api().get<BlockVersion[]>(`/v1/blocks/${blockId}/versions`, { query: { limit: VERSIONS } }),
    placeholderData: (before) => before,
  });
}

export interface Diff {
  diff: string;
  added_lines: number;
  removed_lines: number;
}

export function useDiff(blockId: string, from: number, to: number) {
  return useQuery({
    queryKey: ["diff", blockId, from, to],
    enabled: from >= 1,
    staleTime: Infinity,
    queryFn: () => api().get<Diff>(`/v1/blocks/${blockId}/diff`, { query: { from_version: from, to_version: to } }),
  });
}
