import type { Decision, Image, Part, ToolPart, ToolResult } from "./parts";
import type { WireAnswer, WireCall, WireContent, WireMessage, WireReturn } from "./wire";

/** Parts in their order. Never changed: `extend` returns another. */
export interface Thread {
  readonly parts: readonly Part[];
}

export const EMPTY: Thread = { parts: [] };

/** Returns the thread with more messages, whole ones or pieces. What is unknown leaves it as it is. */
export function extend(thread: Thread, messages: Iterable<WireMessage>): Thread {
  const draft = new Draft([...thread.parts]);
  for (const message of messages) reduce(draft, message);
  return { parts: draft.parts };
}

/** A thread that is being made: changed in place, once per frame or page, so that long ones cost no more. */
class Draft {
  private places: Map<string, number> | null = null;

  constructor(public parts: Part[]) {}

  find(key: string): number {
    this.places ??= new Map(this.parts.map((part, at) => [part.key, at]));
    return this.places.get(key) ?? -1;
  }

  push(part: Part): void {
    this.places?.set(part.key, this.parts.length);
    this.parts.push(part);
  }

  keep(wanted: (part: Part) => boolean): void {
    this.parts = this.parts.filter(wanted);
    this.places = null;
  }

  /** Returns the place of the newest call that fits, or -1. */
  findCall(fits: (call: ToolPart) => boolean): number {
    return this.parts.findLastIndex((part) => part.kind === "tool" && fits(part));
  }

  changeCall(at: number, change: (call: ToolPart) => ToolPart): void {
    const call = this.parts[at];
    if (call?.kind === "tool") this.parts[at] = change(call);
  }
}

function reduce(draft: Draft, message: WireMessage): void {
  switch (message.message_type) {
    case "user_message":
      return put(draft, { ...common(message), kind: "user", ...contentOf(message.content) });
    case "assistant_message":
      return append(draft, message, "assistant", contentOf(message.content).text);
    case "reasoning_message":
      return append(draft, message, "thought", message.reasoning ?? "");
    case "hidden_reasoning_message":
      return append(draft, message, "thought", "");
    case "tool_call_message":
    case "approval_request_message":
      return callsOf(message).forEach((call) => joinCall(draft, message, call));
    case "tool_return_message":
      return returnsOf(message).forEach((each) => settle(draft, message, each));
    case "approval_response_message":
      return decide(draft, message.approvals ?? []);
    case "system_message":
      return put(draft, note(message, "System instructions", contentOf(message.content).text));
    case "summary_message":
      return put(draft, note(message, "Summary of earlier messages", message.summary ?? ""));
    case "event_message":
      return put(draft, note(message, "Earlier messages were summarised", ""));
    case "ping":
      return message.attempt_abandoned ? abandon(draft, message.attempt_abandoned) : undefined;
    default:
  }
}

/** Returns what tells one entry of a list from another: entries of one message share its id. */
export function entryKey(message: WireMessage): string {
  return `${message.message_type}:${message.otid ?? message.id ?? ""}`;
}

function common(message: WireMessage): Pick<Part, "key" | "runId" | "stepId" | "messageId" | "date" | "speaker"> {
  return {
    key: entryKey(message),
    runId: message.run_id ?? "",
    stepId: message.step_id ?? "",
    messageId: message.id ?? "",
    date: message.date ?? "",
    speaker: message.name ?? "",
  };
}

function note(message: WireMessage, label: string, text: string): Part {
  return { ...common(message), kind: "note", label, text };
}

function contentOf(content: string | WireContent[] | null | undefined): { text: string; images: Image[] } {
  if (typeof content === "string" || !content) return { text: content ?? "", images: [] };
  const text = content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n");
  const images = content.flatMap((part) =>
    part.type === "image"
      ? [
          {
            mediaType: part.source?.media_type ?? "",
            data: part.source?.data ?? null,
            link: part.source?.url ?? null,
          },
        ]
      : [],
  );
  return { text, images };
}

function put(draft: Draft, part: Part): void {
  const at = draft.find(part.key);
  if (at < 0) draft.push(part);
  else draft.parts[at] = part;
}

function append(draft: Draft, message: WireMessage, kind: "assistant" | "thought", text: string): void {
  const part = common(message);
  const at = draft.find(part.key);
  const old = draft.parts[at];
  if (old && (old.kind === "assistant" || old.kind === "thought")) {
    draft.parts[at] = { ...old, text: old.text + text };
  } else if (kind === "assistant") {
    draft.push({ ...part, kind, text });
  } else {
    draft.push({ ...part, kind, text, hidden: message.message_type === "hidden_reasoning_message" });
  }
}

/** A list is of whole calls, an object is a piece of one. */
function callsOf(message: WireMessage): WireCall[] {
  const calls = message.tool_calls ?? message.tool_call;
  if (!calls) return [];
  return Array.isArray(calls) ? calls : [calls];
}

function joinCall(draft: Draft, message: WireMessage, call: WireCall): void {
  const callId = call.tool_call_id ?? "";
  const at = draft.findCall((each) => each.callId === callId && each.messageId === (message.id ?? ""));
  if (at >= 0) {
    const isWhole = Array.isArray(message.tool_calls);
    return draft.changeCall(at, (old) => ({
      ...old,
      name: old.name || (call.name ?? ""),
      arguments: isWhole ? (call.arguments ?? "") : old.arguments + (call.arguments ?? ""),
    }));
  }
  draft.push({
    ...common(message),
    key: `${message.id}:${callId}`,
    kind: "tool",
    callId,
    name: call.name ?? "",
    arguments: call.arguments ?? "",
    asks: message.message_type === "approval_request_message",
    decision: null,
    result: null,
  });
}

function returnsOf(message: WireMessage): WireReturn[] {
  if (message.tool_returns?.length) return message.tool_returns;
  return message.tool_call_id
    ? [
        {
          tool_call_id: message.tool_call_id,
          status: message.status ?? "",
          tool_return: message.tool_return,
          stdout: message.stdout ?? null,
          stderr: message.stderr ?? null,
        },
      ]
    : [];
}

/** Puts a result beside its call: the newest of that id, which is unique within a step alone. */
function settle(draft: Draft, message: WireMessage, each: WireReturn): void {
  const isCall = (call: ToolPart): boolean => call.callId === each.tool_call_id;
  let at = draft.findCall((call) => isCall(call) && call.stepId === (message.step_id ?? ""));
  if (at < 0) at = draft.findCall((call) => isCall(call) && call.result === null);
  draft.changeCall(at, (call) => ({ ...call, result: resultOf(each, message.id) }));
}

function resultOf(each: WireReturn, messageId = ""): ToolResult {
  return {
    ok: each.status !== "error",
    text: textOf(each.tool_return),
    stdout: each.stdout ?? [],
    stderr: each.stderr ?? [],
    messageId,
  };
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    return value.map((part: WireContent) => (part.type === "text" ? (part.text ?? "") : `[${part.type}]`)).join("\n");
  }
  return JSON.stringify(value, null, 2);
}

function decide(draft: Draft, answers: WireAnswer[]): void {
  for (const answer of answers) {
    const at = draft.findCall((call) => call.asks && call.callId === answer.tool_call_id && call.decision === null);
    const isTool = answer.type === "tool";
    const decision = isTool ? ALLOWED : { approve: answer.approve === true, reason: answer.reason ?? "" };
    draft.changeCall(at, (call) => ({ ...call, decision, result: isTool ? resultOf(answer) : call.result }));
  }
}

const ALLOWED: Decision = { approve: true, reason: "" };

/** Takes back what an attempt said that was given up: of its message, or of its step. */
function abandon(draft: Draft, attempt: { step_id?: string; message_id?: string | null }): void {
  draft.keep((part) =>
    attempt.message_id ? part.messageId !== attempt.message_id : part.stepId !== attempt.step_id,
  );
}
