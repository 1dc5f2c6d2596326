import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { variablesOf } from "../tools/tools";

export type ServerType = "streamable_http" | "sse" | "stdio";

/** A server of tools. */
export interface Server {
  id: string;
  server_name: string;
  mcp_server_type: ServerType;
  server_url?: string;
  auth_header?: string | null;
  auth_token?: string | null;
  custom_headers?: Record<string, string> | null;
  command?: string;
  args?: string[];
  env?: Record<string, string> | null;
  status?: "connected" | "oauth_required" | "failed" | null;
  problem?: string | null;
  tool_problems?: { name: string; problem: string }[];
  synced_at?: string | null;
}

export interface Changes {
  added: string[];
  updated: string[];
  deleted: string[];
}

export function useServers() {
  return useQuery({
    queryKey: ["mcp-servers"],
    queryFn: async () => (await api().mcpServers.list()) as unknown as Server[],
  });
}

export interface ServerTool {
  id: string;
  name: string;
  description: string;
}

export function useServerTools(serverId: string) {
  return useQuery({
    queryKey: ["mcp-tools", serverId],
    queryFn: async () => (await api().mcpServers.tools.list(serverId)) as unknown as ServerTool[],
  });
}

/** Returns the configuration that a form holds. Throws a sentence where a line cannot be read. */
export function configOf(fields: FormData): object {
  const text = (name: string): string => String(fields.get(name) ?? "").trim();
  const type = text("type") as ServerType;
  if (type === "stdio") {
    const args = text("args").split("\n").map((line) => line.trim()).filter(Boolean);
    return { mcp_server_type: type, command: text("command"), args, env: variablesOf(text("env")) };
  }
  const headers = headersOf(text("headers"));
  return {
    mcp_server_type: type,
    server_url: text("url"),
    ...(text("token") && { auth_header: "Authorization", auth_token: text("token") }),
    custom_headers: headers,
  };
}

/** Returns headers or variables as lines again. */
export function linesOf(values: Record<string, string> | null | undefined, mark: ": " | "="): string {
  return Object.entries(values ?? {}).map(([name, value]) => `${name}${mark}${value}`).join("\n");
}

/** Reads headers, one a line: `X-Team: shop`. */
export function headersOf(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`"${line}" is no header. Write Name: value, one a line.`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

/** Returns what a refresh changed, in words. */
export function wordsOf({ added, updated, deleted }: Changes): string {
  const parts = [
    added.length && `new: ${added.join(", ")}`,
    updated.length && `changed: ${updated.join(", ")}`,
    deleted.length && `gone: ${deleted.join(", ")}`,
  ].filter(Boolean);
  return parts.length ? parts.join("; ") : "Nothing changed.";
}
