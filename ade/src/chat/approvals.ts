import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";

/** Calls that wait in a conversation, the default one without an id, and when their rule answers for a person. */
interface OpenApproval {
  conversation_id: string | null;
  due_at: string | null;
}

const POLL_MILLISECONDS = 10_000;

/** What waits in the conversations of an agent. */
export function useOpenApprovals(agentId: string): ReadonlyMap<string | null, OpenApproval> {
  const refusal = useRefusal("read_messages", agentId);
  const found = useQuery({
    queryKey: ["approvals", agentId],
    enabled: refusal === null,
    refetchInterval: POLL_MILLISECONDS,
    queryFn: () => api().get<OpenApproval[]>(`/v1/agents/${agentId}/approvals`),
  });
  return new Map(found.data?.map((each) => [each.conversation_id, each]));
}
