/** Where a conversation is: of an agent, its default one (null) or another. */
export interface Place {
  agentId: string;
  conversationId: string | null;
}

/** Returns the id by which routes of conversations know it: the agent's for its default one. */
export function routeId(place: Place): string {
  return place.conversationId ?? place.agentId;
}

export function chatPath(place: Place): string {
  return `/agents/${place.agentId}${place.conversationId ? `/c/${place.conversationId}` : ""}`;
}
