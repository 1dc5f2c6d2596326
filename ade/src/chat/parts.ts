/** What a conversation is drawn of. */
export type Part = UserPart | AssistantPart | ThoughtPart | ToolPart | NotePart;

interface Common {
  /** The same for a part that comes in pieces and for the one that is stored. */
  key: string;
  /** Empty where no run is known. */
  runId: string;
  stepId: string;
  messageId: string;
  date: string;
  /** Who says it, where there are several. */
  speaker: string;
}

export interface UserPart extends Common {
  kind: "user";
  text: string;
  images: Image[];
}

export interface AssistantPart extends Common {
  kind: "assistant";
  text: string;
}

export interface ThoughtPart extends Common {
  kind: "thought";
  text: string;
  hidden: boolean;
}

export interface ToolPart extends Common {
  kind: "tool";
  callId: string;
  name: string;
  /** JSON, or the beginning of it. */
  arguments: string;
  /** Whether it runs only after somebody allows it. */
  asks: boolean;
  decision: Decision | null;
  result: ToolResult | null;
}

export interface NotePart extends Common {
  kind: "note";
  label: string;
  text: string;
}

export interface Decision {
  approve: boolean;
  reason: string;
}

export interface ToolResult {
  ok: boolean;
  text: string;
  stdout: string[];
  stderr: string[];
  /** Of the message that brought it. */
  messageId: string;
}

/** `url`: a blob of ours, or null for a picture that lies elsewhere (`link`). */
export interface Image {
  mediaType: string;
  data: string | null;
  link: string | null;
}

/** Returns whether a call waits for a person. */
export function isWaiting(part: Part): part is ToolPart {
  return part.kind === "tool" && part.asks && part.decision === null && part.result === null;
}

/** Returns the place of the part that shows a message, a call by what it returned, too; -1: none does. */
export function placeOf(messageId: string, parts: readonly Part[]): number {
  const isOf = (part: Part): boolean =>
    part.messageId === messageId || (part.kind === "tool" && part.result?.messageId === messageId);
  const said = parts.findIndex((part) => isOf(part) && part.kind !== "thought");
  return said < 0 ? parts.findIndex(isOf) : said;
}
