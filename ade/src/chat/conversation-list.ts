import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

export interface Conversation {
  id: string;
  summary?: string | null;
  created_at?: string | null;
  last_message_at?: string | null;
  archived?: boolean;
  /** What it is called: its summary, or its number. */
  title: string;
}

const LIMIT = 100;

/** The conversations of an agent but its default one, archived ones too, that with the newest message first. */
export function useConversations(agentId: string) {
  return useQuery({
    queryKey: ["conversations", agentId],
    queryFn: async () => {
      const query = { agent_id: agentId, order_by: "last_message_at" as const, archive_status: "all" as const, limit: LIMIT };
      const found = (await api().conversations.list(query)) as unknown as Omit<Conversation, "title">[];
      return found.map((each, at): Conversation => ({ ...each, title: each.summary || `Conversation ${found.length - at}` }));
    },
  });
}
