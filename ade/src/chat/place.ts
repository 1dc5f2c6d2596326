/** Where a conversation is: of an agent, its default one (null) or another. */
export interface Place {
  agentId: string;
  conversationId: string | null;
  /** The conversation that stands beside it, "main" for the default one. */
  beside?: string | null;
  /** The message at which it is opened; none: at the newest. */
  messageId?: string | null;
}

/** Returns the id by which routes of conversations know it: the agent's for its default one. */
export function routeId(place: Place): string {
  return place.conversationId ?? place.agentId;
}

export function chatPath({ agentId, conversationId, beside, messageId }: Place): string {
  const parts = [conversationId && `/c/${conversationId}`, beside && `/beside/${beside}`, messageId && `/m/${messageId}`];
  return `/agents/${agentId}${parts.filter(Boolean).join("")}`;
}

/** Returns the place beside one; null where there is none, or where it is the same. */
export function placeBeside({ agentId, conversationId, beside }: Place): Place | null {
  if (!beside || beside === (conversationId ?? "main")) return null;
  return { agentId, conversationId: beside === "main" ? null : beside };
}
