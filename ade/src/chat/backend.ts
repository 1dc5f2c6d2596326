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

/** Which messages: those before one, or with `asc` the oldest of those after one; empty: the newest. */
export interface Cursor {
  before?: string;
  after?: string;
  order?: "asc";
}

/** With whom a conversation is had. */
export interface Backend {
  /** Sends messages. The same otids find the run that they began. */
  send(messages: object[], signal: AbortSignal): Promise<Events>;
  /** Returns a page of what is stored, oldest first. */
  page(cursor?: Cursor): Promise<WireMessage[]>;
  /** Returns the runs that go on, oldest first. */
  activeRuns(): Promise<RunInfo[]>;
  cancel(runId: string): Promise<unknown>;
}

export const LONG = { maxRetries: 0, timeout: 600_000 };

/** Returns an agent's side of a conversation. */
export function agentBackend(place: Place): Backend {
  const { agentId, conversationId } = place;
  return {
    async send(messages, signal) {
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
    },
    async page(cursor) {
      // The conversations' own route gives the newest first, the parts of each message not.
      const query = { limit: PAGE, conversation_id: conversationId ?? "default", ...cursor };
      return (await api().agents.messages.list(agentId, query)).items as unknown as WireMessage[];
    },
    async activeRuns() {
      const answer = await api().runs.list({ agent_id: agentId, active: true });
      const runs = answer.items as unknown as RunInfo[];
      return runs.filter((run) => (run.conversation_id ?? null) === conversationId).reverse();
    },
    cancel: (runId) => api().agents.messages.cancel(agentId, { run_ids: [runId] }, { maxRetries: 0 }),
  };
}

/** Opens the stored stream of a run after a number. */
export async function attach(runId: string, after: number, signal: AbortSignal): Promise<Events> {
  const body = { starting_after: after, stream_tokens: true, include_compaction_messages: true };
  return (await api().runs.messages.stream(runId, body as never, { ...LONG, signal })) as unknown as Events;
}
