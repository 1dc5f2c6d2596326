import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

export type Language = "python" | "typescript" | "javascript";

export interface Requirement {
  name: string;
  version?: string | null;
}

/** A tool of the catalogue. */
export interface Tool {
  id: string;
  name: string;
  description: string;
  tool_type: string;
  source_type: Language;
  source_code: string | null;
  json_schema: Schema | null;
  tags: string[];
  return_char_limit: number;
  default_requires_approval: boolean | null;
  enable_parallel_execution: boolean;
  pip_requirements: Requirement[] | null;
  npm_requirements: Requirement[] | null;
  network?: Record<string, unknown>;
  idempotent?: boolean;
  metadata_?: { mcp?: { server_name?: string } } | null;
}

/** What a model is told about a tool. */
export interface Schema {
  name?: string;
  description?: string;
  parameters?: { properties?: Record<string, Property>; required?: string[] };
}

export interface Property {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  default?: unknown;
}

const MOST = 200;

/** The tools whose names or descriptions contain a text, of a kind. */
export function useTools(search: string, kind: Kind) {
  return useQuery({
    queryKey: ["tools", search, kind],
    placeholderData: (before) => before,
    queryFn: async () => {
      const query = { limit: MOST, ...(search && { search }), ...KINDS[kind].query };
      return (await api().tools.list(query as never)).items as unknown as Tool[];
    },
  });
}

export type Kind = "all" | "own" | "shipped" | "mcp";
export const KINDS: Record<Kind, { label: string; query: object }> = {
  all: { label: "All tools", query: {} },
  own: { label: "Yours", query: { tool_types: ["custom"] } },
  shipped: { label: "Shipped with Loci", query: { exclude_tool_types: ["custom", "external_mcp"] } },
  mcp: { label: "Of MCP servers", query: { tool_types: ["external_mcp"] } },
};

export function useTool(id: string | null) {
  return useQuery({
    queryKey: ["tool", id],
    enabled: id !== null,
    queryFn: async () => (await api().tools.retrieve(id ?? "")) as unknown as Tool,
  });
}

export function useVariables(toolId: string | null, mayRead: boolean) {
  return useQuery({
    queryKey: ["tool-variables", toolId],
    enabled: toolId !== null && mayRead,
    queryFn: () => api().get<{ key: string }[]>(`/v1/tools/${toolId}/environment-variables`),
  });
}

/** Returns what a model would be told. Throws the server's sentence where the source is no tool. */
export function schemaOf(code: string, language: Language, signal: AbortSignal): Promise<Schema> {
  return api().post("/v1/tools/generate-schema", { body: { code, source_type: language }, maxRetries: 0, signal });
}

/** Returns whether source and schema are their maker's: of Loci, or of an MCP server. */
export function isForeign(tool: Tool): boolean {
  return tool.tool_type !== "custom";
}

/** Returns arguments to begin with, as a schema asks for them. */
export function sampleOf(schema: Schema | null): string {
  const properties = Object.entries(schema?.parameters?.properties ?? {});
  const sample = Object.fromEntries(properties.map(([name, property]) => [name, valueOf(property)]));
  return JSON.stringify(sample, null, 2);
}

const VALUES: Record<string, unknown> = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {}, null: null };

function valueOf(property: Property): unknown {
  if (property.default !== undefined) return property.default;
  if (property.enum?.length) return property.enum[0];
  const type = Array.isArray(property.type) ? property.type[0] : property.type;
  return VALUES[type ?? "string"] ?? null;
}

/** Reads packages, one a line: `humanize==4.0.0` or `humanize`; of npm `zod@4.0.0`, `@scope/name`. */
export function requirementsOf(text: string): Requirement[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, name = line, version] = /^(@?[^@=\s]+)(?:==|@)(\S+)$/.exec(line) ?? [];
    return version ? { name, version } : { name: line };
  });
}

export function requirementLines(requirements: Requirement[] | null, mark: "==" | "@"): string {
  return (requirements ?? []).map(({ name, version }) => (version ? `${name}${mark}${version}` : name)).join("\n");
}

/** Reads variables, one a line: `NAME=value`. Throws where a line is none. */
export function variablesOf(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`"${line}" is no variable. Write NAME=value, one a line.`);
    return [line.slice(0, at).trim(), line.slice(at + 1)];
  }));
}

/** Reads JSON of an object; an empty text is an empty one. Throws a sentence that says what to do. */
export function objectOf(text: string, what: string): Record<string, unknown> {
  if (!text.trim()) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} must be JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(`${what} must be a JSON object, such as {"city": "Oslo"}.`);
  return value as Record<string, unknown>;
}
