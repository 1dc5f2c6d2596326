import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

export interface ApiKey {
  id: string;
  user_id: string | null;
  name: string;
  hint: string;
  role: string;
  agent_ids: string[];
  requests_per_minute: number | null;
  created_at: string | null;
  expires_at: string | null;
  last_used_at: string | null;
}

/** What each role may do, for whoever chooses one. */
export const ROLES: Record<string, string> = {
  developer: "Everything except keys, users, providers and budgets",
  admin: "Everything",
  "agent-only": "Reads agents and talks to them",
  "read-only": "Reads everything but secrets",
};

export function useKeys() {
  return useQuery({ queryKey: ["api-keys"], queryFn: () => api().get<ApiKey[]>("/v1/api-keys") });
}

/** Returns the body of a new key. Throws what is missing. */
export function bodyOf(fields: FormData): object {
  const agents = fields.getAll("agents").map(String).filter(Boolean);
  const limit = String(fields.get("limit") ?? "").trim();
  const until = String(fields.get("until") ?? "");
  const expires = until ? new Date(`${until}T23:59:59`) : null;
  if (expires && expires.getTime() < Date.now()) throw new Error("The last day of the key is over already.");
  return {
    name: String(fields.get("name")).trim(),
    role: String(fields.get("role")),
    ...(agents.length && { agent_ids: agents }),
    ...(limit && { requests_per_minute: Number(limit) }),
    ...(expires && { expires_at: expires.toISOString() }),
  };
}

/** Returns whether a key may be the one that this page uses: a hint is how a key begins. */
export function isOwn(key: ApiKey, current: string | null): boolean {
  return current !== null && key.hint !== "" && current.startsWith(key.hint);
}
