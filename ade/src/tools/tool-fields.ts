import type { Draft } from "../ui/form-draft";
import { type Language, objectOf, requirementLines, requirementsOf, type Tool, variablesOf } from "./tools";

/** What a new tool begins with. */
export const BEGINNINGS: Record<Language, string> = {
  python: `def shout(text: str) -> str:
    """Say it loudly.

    Args:
        text: What to say.
    """
    return text.upper() + "!"
`,
  typescript: `/** Say it loudly.
 *  @param text What to say. */
export function shout(text: string): string {
  return text.toUpperCase() + "!";
}
`,
  javascript: `/** Say it loudly.
 *  @param {string} text What to say. */
export function shout(text) {
  return text.toUpperCase() + "!";
}
`,
};

/** What is typed of a tool, all as text: this is what outlives the page. Values of secrets are not kept. */
export interface Fields {
  language: Language;
  code: string;
  pip: string;
  npm: string;
  network: string;
  variables: string;
  tags: string;
  limit: string;
  asks: boolean;
  isParallel: boolean;
  isIdempotent: boolean;
}

export function fieldsOf(tool: Tool | null): Fields {
  return {
    language: languageOf(tool),
    code: tool ? (tool.source_code ?? "") : BEGINNINGS.python,
    pip: requirementLines(tool?.pip_requirements ?? null, "=="),
    npm: requirementLines(tool?.npm_requirements ?? null, "@"),
    network: Object.keys(tool?.network ?? {}).length ? JSON.stringify(tool?.network, null, 2) : "",
    variables: "",
    tags: tool?.tags.join(", ") ?? "",
    limit: String(tool?.return_char_limit ?? 50_000),
    asks: tool?.default_requires_approval ?? false,
    isParallel: tool?.enable_parallel_execution ?? false,
    isIdempotent: tool?.idempotent ?? false,
  };
}

/** Whatever is neither TypeScript nor JavaScript is Python. */
function languageOf(tool: Tool | null): Language {
  return tool?.source_type === "typescript" || tool?.source_type === "javascript" ? tool.source_type : "python";
}

/** Returns the whole body; of a tool of somebody else, what may be changed. */
export function bodyOf(fields: Fields, isOthers: boolean): object {
  const settings = {
    tags: fields.tags.split(",").map((tag) => tag.trim()).filter(Boolean),
    return_char_limit: Number(fields.limit),
    default_requires_approval: fields.asks,
  };
  if (isOthers) return settings;
  return {
    ...settings,
    source_code: fields.code,
    source_type: fields.language,
    enable_parallel_execution: fields.isParallel,
    idempotent: fields.isIdempotent,
    pip_requirements: requirementsOf(fields.pip),
    npm_requirements: requirementsOf(fields.npm),
    network: objectOf(fields.network, "The network"),
    ...(fields.variables.trim() && { environment: variablesOf(fields.variables) }),
  };
}

/** Returns the body of an update: what differs from `base`. A schema that somebody gave by hand stays, unless the source changes. */
export function changesOf(fields: Fields, base: Fields, isOthers: boolean): object {
  const before = new Map(Object.entries(bodyOf({ ...base, variables: "" }, isOthers)));
  const changed = Object.entries(bodyOf(fields, isOthers)).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before.get(key)));
  const body = Object.fromEntries(changed);
  return "source_code" in body ? { ...body, source_type: fields.language } : body;
}

/** Returns what is kept of an edit: what differs, but for values of secrets. */
export function toDraft(fields: Fields, base: Fields): Draft {
  const entries = Object.entries(fields).filter(([key, value]) => key !== "variables" && value !== base[key as keyof Fields]);
  return Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
}

export function fromDraft(draft: Draft): Partial<Fields> {
  return Object.fromEntries(
    Object.entries(draft).map(([key, value]) => [key, value === "true" || value === "false" ? value === "true" : value]),
  );
}
