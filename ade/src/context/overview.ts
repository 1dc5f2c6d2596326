import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Place } from "../chat/place";

/** What the next request to the model would hold. Tokens are estimates. */
export interface Overview {
  context_window_size_max: number;
  context_window_size_current: number;
  num_messages: number;
  num_archival_memory: number;
  num_recall_memory: number;
  num_tokens_system: number;
  system_prompt: string;
  num_tokens_functions_definitions: number;
  functions_definitions: { function: { name: string; description: string; parameters: unknown } }[];
  num_tokens_core_memory: number;
  core_memory: string;
  num_tokens_external_memory_summary: number;
  external_memory_summary: string;
  num_tokens_summary_memory: number;
  summary_memory: string | null;
  num_tokens_messages: number;
  messages: WindowMessage[];
}

export interface WindowMessage {
  id: string;
  role: string;
  content: { type: string; text?: string }[];
  tool_calls: unknown[] | null;
  name: string | null;
}

export function useOverview(place: Place) {
  return useQuery({
    queryKey: ["context", place.agentId, place.conversationId ?? ""],
    queryFn: () =>
      api().get<Overview>(`/v1/agents/${place.agentId}/context`, {
        query: place.conversationId ? { conversation_id: place.conversationId } : {},
      }),
    placeholderData: (before) => before,
  });
}

/** One of the things that fill a context window. */
export interface Segment {
  key: "system" | "tools" | "memory" | "external" | "summary" | "messages";
  label: string;
  tokens: number;
  /** Its real texts, each with what it is. */
  texts: { label: string; text: string }[];
}

/** Returns what fills the window, in the order of the prompt; what is empty is left out. */
export function segmentsOf(overview: Overview): Segment[] {
  const all: Segment[] = [
    one("system", "System instructions", overview.num_tokens_system, overview.system_prompt),
    {
      key: "tools",
      label: "Tools",
      tokens: overview.num_tokens_functions_definitions,
      texts: overview.functions_definitions.map(({ function: each }) => ({
        label: each.name,
        text: `${each.description}\n\n${JSON.stringify(each.parameters, null, 2)}`,
      })),
    },
    one("memory", "Memory blocks", overview.num_tokens_core_memory, overview.core_memory),
    one("external", "What lies outside", overview.num_tokens_external_memory_summary, overview.external_memory_summary),
    one("summary", "Summary of earlier messages", overview.num_tokens_summary_memory, overview.summary_memory ?? ""),
    {
      key: "messages",
      label: `Messages (${overview.messages.length})`,
      tokens: overview.num_tokens_messages,
      texts: overview.messages.map((each) => ({ label: each.name ? `${each.role}: ${each.name}` : each.role, text: textOf(each) })),
    },
  ];
  return all.filter((each) => each.tokens > 0 || each.texts.some(({ text }) => text));
}

function one(key: Segment["key"], label: string, tokens: number, text: string): Segment {
  return { key, label, tokens, texts: text ? [{ label, text }] : [] };
}

function textOf(message: WindowMessage): string {
  const said = message.content.map((part) => part.text ?? `[${part.type}]`).join("\n");
  const calls = message.tool_calls?.length ? JSON.stringify(message.tool_calls, null, 2) : "";
  return [said, calls].filter(Boolean).join("\n");
}

/** Returns by how many tokens each segment grew since the last look, and whether its text changed. */
export function changesOf(before: readonly Segment[], now: readonly Segment[]): Map<string, { tokens: number; isText: boolean }> {
  const known = new Map(before.map((each) => [each.key, each]));
  const changes = new Map<string, { tokens: number; isText: boolean }>();
  for (const each of now) {
    const old = known.get(each.key);
    const isText = JSON.stringify(old?.texts ?? []) !== JSON.stringify(each.texts);
    if (isText) changes.set(each.key, { tokens: each.tokens - (old?.tokens ?? 0), isText });
  }
  return changes;
}

/** Returns the exact request that a message would make. */
export function previewRequest(place: Place, text: string): Promise<unknown> {
  const path = place.conversationId ? `conversations/${place.conversationId}` : `agents/${place.agentId}`;
  const body = { messages: [{ role: "user", content: text }] };
  return api().post(`/v1/${path}/messages/preview-raw-payload`, { body, maxRetries: 0 });
}
