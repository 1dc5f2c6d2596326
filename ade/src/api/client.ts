import { Letta } from "@letta-ai/letta-client";
import { currentKey } from "./key";

/** What GET /v1/whoami answers. */
export interface Caller {
  organization_id: string;
  user_id: string;
  role: string;
  rights: Right[];
  agents: Record<string, Right[]> | null;
  has_credential: boolean;
}

export type Right = "read_agent" | "write_agent" | "read_messages" | "write_messages" | "read" | "write" | "own";

/** Where the API is: beside the page, whatever path a proxy put before both. */
export const BASE_URL = location.origin + location.pathname.replace(/\/[^/]*$/, "");

let client = make();

function make(): Letta {
  return new Letta({ baseURL: BASE_URL, apiKey: currentKey(), maxRetries: 1, logLevel: "off" });
}

/** Returns the one client. */
export function api(): Letta {
  return client;
}

/** Makes the client anew, after the key changed. */
export function renewClient(): void {
  client = make();
}

export function whoAmI(): Promise<Caller> {
  return client.get("/v1/whoami", { maxRetries: 0 });
}
