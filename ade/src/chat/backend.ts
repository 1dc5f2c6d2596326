import { api } from "../api/client";
import { type Place, routeId } from "./place";
import { keepsRequests } from "./trace-choice";
import type { Events } from "./turn";
import type { WireMessage } from "./wire";

export const PAGE = 50;

/** A run, as far as a chat wants to know. */
export interface RunInfo {
  id: string;
  conversation_id?: string | null;
  status?: string;
}

const LONG = { maxRetries: 0, timeout: 600_000 };

/** Sends messages. The same otids find the run that they began. */
export async function send(place: Place, messages: object[], signal: AbortSignal): Promise<Events> {
  const body = {
    messages,
    streaming: true,
    stream_tokens: true,
    background: true,
    include_compaction_messages: true,
    // Loci's own: a second message waits in line on this route, too.
    on_busy: "wait",
    ...(keepsRequests() && { include_trace: true }),
  };
  const stream = await api().conversations.messages.create(routeId(place), body as never, { ...LONG, signal });
  return stream as unknown as Events;
}

/** Opens the stored stream of a run after a number. */
export async function attach(runId: string, after: number, signal: AbortSignal): Promise<Events> {
  const body = { starting_after: after, stream_tokens: true, include_compaction_messages: true };
  return (await api().runs.messages.stream(runId, body as never, { ...LONG, signal })) as unknown as Events;
}

/** Returns a page of what is stored, oldest first: the newest, or what was before a message. */
export async function page(place: Place, before?: string): Promise<WireMessage[]> {
  // The conversations' own route gives the newest first, the parts of each message not.
  const query = { limit: PAGE, conversation_id: place.conversationId ?? "default", ...(before && { before }) };
  const answer = await api().agents.messages.list(place.agentId, query);
  return answer.items as unknown as WireMessage[];
}

/** Returns the runs of a conversation that go on, oldest first. */
export async function activeRuns(place: Place): Promise<RunInfo[]> {
  const answer = await api().runs.list({ agent_id: place.agentId, active: true });
  const runs = answer.items as unknown as RunInfo[];
  return runs.filter((run) => (run.conversation_id ?? null) === place.conversationId).reverse();
}

export async function cancel(place: Place, runId: string): Promise<void> {
  await api().agents.messages.cancel(place.agentId, { run_ids: [runId] }, { maxRetries: 0 });
}
