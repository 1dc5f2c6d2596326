import { api } from "../api/client";
import { type Backend, type Cursor, LONG, PAGE, type RunInfo } from "../chat/backend";
import type { Events } from "../chat/turn";
import type { WireMessage } from "../chat/wire";

const ACTIVE = ["created", "running"];

/** Returns a group's side of its conversation: each message to it begins a round, which is a run. */
export function groupBackend(groupId: string): Backend {
  const path = `/v1/groups/${groupId}/messages`;
  const list = async (query: Cursor & { limit: number }): Promise<WireMessage[]> => {
    const messages = await api().get<WireMessage[]>(path, { query });
    return messages.filter((message) => message.message_type !== "system_message");
  };
  return {
    send: (messages, signal) => {
      const body = { messages, stream_tokens: true, background: true };
      return api().post<Events>(`${path}/stream`, { body, stream: true, ...LONG, signal });
    },
    page: (cursor) => list({ limit: PAGE, ...cursor }),
    async activeRuns() {
      // What was said last is of the round that goes on, if any.
      const last = (await list({ limit: 1 })).at(-1);
      if (!last?.run_id) return [];
      const run = (await api().runs.retrieve(last.run_id)) as unknown as RunInfo;
      return ACTIVE.includes(run.status ?? "") ? [run] : [];
    },
    cancel: (runId) => api().post(`${path}/cancel`, { body: { run_ids: [runId] }, maxRetries: 0 }),
  };
}
