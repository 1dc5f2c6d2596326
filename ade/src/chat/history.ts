import { EMPTY, entryKey, extend, type Thread } from "./thread";
import type { WireMessage } from "./wire";

// What a run was sent: its stream does not repeat it.
const INPUTS = new Set(["user_message", "approval_response_message", "system_message"]);

/** A turn that is followed, as far as the thread shows it. */
export interface Followed {
  runId: string;
  input: WireMessage | null;
  chunks: WireMessage[];
}

/** What is known of the messages that are stored, oldest first. */
export class History {
  private messages: WireMessage[] = [];
  hasOlder = false;
  /** Of a passage that does not reach the newest. */
  hasNewer = false;

  constructor(private readonly pageSize: number) {}

  get oldest(): string | undefined {
    return this.messages[0]?.id;
  }

  get newest(): string | undefined {
    return this.messages.at(-1)?.id;
  }

  /** Puts the newest page in the place of what is known of it. */
  merge(newest: WireMessage[]): void {
    const keys = new Set(newest.map(entryKey));
    const first = newest[0] && entryKey(newest[0]);
    const at = this.messages.findIndex((message) => entryKey(message) === first);
    if (at < 0) {
      // Without an overlap there is a gap: what was known before is loaded again on demand.
      this.messages = newest;
      this.hasOlder = newest.length >= this.pageSize;
      return;
    }
    const unstored = this.messages.slice(at).filter((message) => message.seq_id && !keys.has(entryKey(message)));
    this.messages = [...this.messages.slice(0, at), ...newest, ...unstored];
  }

  prepend(older: WireMessage[]): void {
    const known = new Set(this.messages.map(entryKey));
    this.messages = [...older.filter((message) => !known.has(entryKey(message))), ...this.messages];
    this.hasOlder = older.length >= this.pageSize;
  }

  append(newer: WireMessage[]): void {
    const known = new Set(this.messages.map(entryKey));
    this.messages = [...this.messages, ...newer.filter((message) => !known.has(entryKey(message)))];
    this.hasNewer = newer.length >= this.pageSize;
  }

  /** Takes in an earlier passage. Returns whether it reaches this. */
  join(earlier: History): boolean {
    const first = this.messages[0] && entryKey(this.messages[0]);
    const at = earlier.messages.findIndex((message) => entryKey(message) === first);
    if (at < 0) return false;
    this.messages = [...earlier.messages.slice(0, at), ...this.messages];
    this.hasOlder = earlier.hasOlder;
    return true;
  }

  /** Keeps what a turn said that was cut short, stored or not. */
  keep({ runId, input, chunks }: Followed): void {
    const stored = new Set(this.messages.map(entryKey));
    if (input && !stored.has(entryKey(input))) this.messages = [...this.messages, { ...input, run_id: runId }];
    this.messages = [...this.messages, ...chunks.filter((message) => !stored.has(entryKey(message)))];
  }

  /** Returns what a run was sent by a person; undefined where it is not known. */
  sentTo(runId: string): WireMessage | undefined {
    return this.messages.findLast((message) => message.message_type === "user_message" && message.run_id === runId);
  }

  /** Returns the thread: what is stored but of runs that are followed, then these from their beginning. */
  fold(turns: readonly Followed[]): Thread {
    const live = new Set(turns.map((turn) => turn.runId).filter(Boolean));
    const stored = this.messages.filter(
      (message) => INPUTS.has(message.message_type ?? "") || !live.has(message.run_id ?? ""),
    );
    const known = new Set(stored.map((message) => message.otid));
    const followed = turns.flatMap(({ input, chunks }) =>
      input && !known.has(input.otid) ? [input, ...chunks] : chunks,
    );
    return extend(EMPTY, [...stored, ...followed]);
  }
}
