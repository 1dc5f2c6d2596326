import { APIConnectionError, APIError } from "@letta-ai/letta-client";

/** What to tell a person about a failure. */
export interface Problem {
  sentence: string;
  /** By which the server's logs find it. */
  trace: string | null;
  status: number | null;
}

/** Returns a problem in words. */
export function problemOf(error: unknown): Problem {
  if (error instanceof APIConnectionError) {
    return { sentence: "Loci does not answer. Is it running?", trace: null, status: null };
  }
  if (error instanceof APIError) {
    const body = error.error as Body | undefined;
    return {
      sentence: sentenceOf(body) ?? error.message,
      trace: error.headers?.get("x-trace-id") ?? null,
      status: error.status ?? null,
    };
  }
  return { sentence: error instanceof Error ? error.message : String(error), trace: null, status: null };
}

interface Body {
  detail?: unknown;
  message?: unknown;
  error?: Body | string;
}

/** Returns what a body says of a failure; null where it says nothing. */
export function sentenceOf(body: Body | undefined): string | null {
  // Events of streams have both: a sentence, and the particulars.
  if (typeof body?.message === "string" && typeof body.detail === "string" && !body.detail.startsWith(body.message)) {
    return `${body.message} (${body.detail})`;
  }
  // Models and MCP servers have both within `error`.
  if (body?.error && typeof body.error === "object") return sentenceOf(body.error);
  const detail = body?.detail ?? body?.message;
  if (typeof detail === "string") return detail;
  if (detail && typeof detail === "object" && "message" in detail) return String(detail.message);
  return detail ? JSON.stringify(detail) : null;
}

export function isStatus(error: unknown, ...statuses: number[]): boolean {
  return error instanceof APIError && error.status !== undefined && statuses.includes(error.status);
}

/** Returns whether nobody answered, so that what was asked may have happened or not. */
export function isLost(error: unknown): boolean {
  return error instanceof APIConnectionError || error instanceof TypeError;
}
