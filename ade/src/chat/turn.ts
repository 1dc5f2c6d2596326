import { APIError } from "@letta-ai/letta-client";
import { isLost, isStatus, problemOf, type Problem } from "../api/errors";
import { uuid } from "../api/ids";
import type { WireMessage } from "./wire";

export type Phase = "sending" | "unsure" | "queued" | "streaming" | "detached" | "ended";

/** How a turn ended. */
export interface Ending {
  reason: string;
  problem: Problem | null;
  tokens: { input: number; output: number; cached: number | null } | null;
  steps: number;
  seconds: number;
}

export type Events = AsyncIterable<WireMessage>;
/** Opens the stream of a run, from the place after a number. */
export type Open = (after: number, runId: string, signal: AbortSignal) => Promise<Events>;

const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

/** One turn as this page follows it: its pieces, and where it stands. Goes on after a lost connection. */
export class Turn {
  readonly id = uuid();
  phase: Phase;
  runId: string;
  chunks: WireMessage[] = [];
  ending: Ending | null = null;
  isStopping = false;
  readonly began = performance.now();
  private abort = new AbortController();
  private isPaused = false;
  private wake: (() => void) | null = null;
  /** Of the newest piece, and the newest before it: several pieces may share a number. */
  private last = 0;
  private complete = 0;

  constructor(
    /** What was sent, as it will be stored; null for a run that was joined. */
    readonly input: WireMessage | null,
    private readonly open: Open,
    private readonly hears: { piece(message: WireMessage): void; change(refold: boolean): void; end(): void },
    runId = "",
  ) {
    this.runId = runId;
    this.phase = runId ? "streaming" : "sending";
  }

  /** Follows the turn to its end. */
  async follow(): Promise<void> {
    for (let failures = 0; !this.ending; ) {
      const before = this.last;
      try {
        await this.read(await this.open(this.complete, this.runId, this.abort.signal));
      } catch (error) {
        if (this.isFinal(error)) return;
      }
      if (this.ending) break;
      if (this.last > before) failures = 0;
      this.detach();
      await this.pause(WAITS[Math.min(failures++, WAITS.length - 1)] ?? 0);
    }
    this.phase = "ended";
    this.hears.end();
  }

  /** Closes the connection while nobody looks. */
  rest(): void {
    if (this.ending || !this.runId) return;
    this.isPaused = true;
    this.abort.abort();
  }

  /** Goes on at once. */
  goOn(): void {
    this.isPaused = false;
    this.wake?.();
  }

  private async read(events: Events): Promise<void> {
    for await (const message of events) this.hear(message);
  }

  private hear(message: WireMessage): void {
    if (message.run_id && !this.runId) this.runId = message.run_id;
    if (typeof message.seq_id === "number" && message.seq_id > this.last) {
      this.complete = this.last;
      this.last = message.seq_id;
    }
    switch (message.message_type) {
      case "stop_reason":
        this.finish(message.stop_reason ?? "end_turn");
        return;
      case "usage_statistics":
        this.use(message);
        return;
      case "ping":
        if (!message.attempt_abandoned) {
          this.enter(this.chunks.length ? "streaming" : "queued");
          return;
        }
    }
    this.enter("streaming");
    this.chunks.push(message);
    this.hears.piece(message);
  }

  private enter(phase: Phase): void {
    if (this.phase === phase || this.ending) return;
    this.phase = phase;
    this.hears.change(false);
  }

  private finish(reason: string, problem: Problem | null = null): void {
    const seconds = (performance.now() - this.began) / 1000;
    this.ending = { reason, problem, tokens: null, steps: 0, seconds, ...this.ending, ...(problem && { problem }) };
  }

  private use(message: WireMessage): void {
    if (!this.ending) return;
    this.ending = {
      ...this.ending,
      tokens: {
        input: message.prompt_tokens ?? 0,
        output: message.completion_tokens ?? 0,
        cached: message.cached_input_tokens ?? null,
      },
      steps: message.step_count ?? 0,
    };
  }

  /** Returns whether there is nothing to go on with: the caller sees `ending`, or the phase "unsure". */
  private isFinal(error: unknown): boolean {
    if (this.abort.signal.aborted) return false;
    if (isStreamError(error)) {
      this.finish("error", problemOf(error));
      return false;
    }
    if (this.runId && (isLost(error) || isStatus(error, 408, 429, 500, 502, 503, 504))) return false;
    if (this.runId && isStatus(error, 404, 410)) {
      // Its stream is no longer kept: what is stored tells the rest.
      this.finish("end_turn");
      return false;
    }
    if (!this.runId && isLost(error)) {
      this.enter("unsure");
      return true;
    }
    this.finish("error", problemOf(error));
    return false;
  }

  private detach(): void {
    this.chunks = this.chunks.filter((message) => (message.seq_id ?? 0) <= this.complete);
    this.last = this.complete;
    if (this.abort.signal.aborted) this.abort = new AbortController();
    else this.phase = this.runId ? "detached" : "sending";
    this.hears.change(true);
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.isPaused ? undefined : setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function isStreamError(error: unknown): boolean {
  return error instanceof APIError && error.status === undefined && !isLost(error);
}
