import { isStatus, problemOf, type Problem } from "../api/errors";
import { uuid } from "../api/ids";
import * as backend from "./backend";
import { accepted, giveBack, takeDraft } from "./drafts";
import { isWaiting, type Part, type ToolPart } from "./parts";
import { type Place, routeId } from "./place";
import { EMPTY, entryKey, extend, type Thread } from "./thread";
import { type Ending, Turn } from "./turn";
import type { WireContent, WireMessage } from "./wire";

/** What a chat shows at a moment. */
export interface Snapshot {
  status: "loading" | "ready" | "failed";
  problem: Problem | null;
  parts: readonly Part[];
  turns: readonly Turn[];
  waiting: readonly ToolPart[];
  endings: ReadonlyMap<string, Ending>;
  hasOlder: boolean;
  /** Why the last message was not taken; its text is in the editor again. */
  refusal: Problem | null;
  /** Changes whenever the approval wants the focus. */
  attention: number;
}

// What a run was sent: its stream does not repeat it.
const INPUTS = new Set(["user_message", "approval_response_message", "system_message"]);
const POLL_MILLISECONDS = 10_000;
const HIDDEN_MILLISECONDS = 30_000;
const PENDING = /waiting for approval|PENDING_APPROVAL/;

/** One conversation, which goes on while nobody looks at it. */
export class Session {
  private history: WireMessage[] = [];
  private thread: Thread = EMPTY;
  private pieces: WireMessage[] = [];
  private frame = 0;
  private listeners = new Set<() => void>();
  private snapshot: Snapshot = {
    status: "loading",
    problem: null,
    parts: [],
    turns: [],
    waiting: [],
    endings: new Map(),
    hasOlder: false,
    refusal: null,
    attention: 0,
  };
  private poll = 0;
  private isLoadingOlder = false;
  private channel = new BroadcastChannel("loci.turns");

  constructor(readonly place: Place) {
    this.channel.addEventListener("message", (event: MessageEvent<string>) => {
      if (event.data === this.key) void this.join(true);
    });
  }

  get key(): string {
    return routeId(this.place);
  }

  /** Both are for useSyncExternalStore. */
  subscribe = (listener: () => void): (() => void) => {
    if (this.listeners.size === 0) this.wakeUp();
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) clearInterval(this.poll);
    };
  };

  getSnapshot = (): Snapshot => this.snapshot;

  /** Loads what is stored, and joins the run that goes on, if any. */
  load = async (): Promise<void> => {
    try {
      const newest = await backend.page(this.place);
      this.merge(newest);
      this.show({ status: "ready", problem: null });
      await this.join();
    } catch (error) {
      if (this.snapshot.status !== "ready") this.show({ status: "failed", problem: problemOf(error) });
    }
  };

  loadOlder = async (): Promise<void> => {
    const first = this.history[0]?.id;
    if (this.isLoadingOlder || !first || !this.snapshot.hasOlder) return;
    this.isLoadingOlder = true;
    try {
      const older = await backend.page(this.place, first);
      const known = new Set(this.history.map(entryKey));
      this.history = [...older.filter((message) => !known.has(entryKey(message))), ...this.history];
      this.refold();
      this.show({ hasOlder: older.length >= backend.PAGE });
    } catch {
      // Scrolling asks again.
    } finally {
      this.isLoadingOlder = false;
    }
  };

  /** Sends what the editor holds. */
  send = (content: string | WireContent[], text: string): void => {
    takeDraft(this.key);
    this.begin(content, text);
  };

  /** Sends the message of a run that failed as a new one. */
  sendAgain = (runId: string): void => {
    const failed = this.history.findLast(
      (message) => message.message_type === "user_message" && message.run_id === runId,
    );
    if (failed?.content) this.begin(failed.content, typeof failed.content === "string" ? failed.content : "");
  };

  /** Answers all calls that wait. */
  answer = (answers: { callId: string; approve: boolean; reason: string }[]): void => {
    const otid = uuid();
    const approvals = answers.map((each) => ({
      type: "approval",
      tool_call_id: each.callId,
      approve: each.approve,
      reason: each.reason || null,
    }));
    const shown: WireMessage = { message_type: "approval_response_message", otid, approvals };
    this.start(shown, [{ type: "approval", approvals, otid }], "");
  };

  stop = async (turn: Turn): Promise<void> => {
    turn.isStopping = true;
    this.show({});
    try {
      await backend.cancel(this.place, turn.runId);
    } catch (error) {
      turn.isStopping = false;
      this.show({ refusal: problemOf(error) });
    }
  };

  /** Cancels what goes on, so that a message that waits is next. */
  goFirst = async (turn: Turn): Promise<void> => {
    const ahead = this.snapshot.turns.slice(0, this.snapshot.turns.indexOf(turn));
    await Promise.all(ahead.filter((each) => each.runId).map(this.stop));
  };

  /** Sends again what may have been sent: the same otid finds its run. */
  retry = (turn: Turn): void => {
    turn.phase = "sending";
    this.show({});
    void turn.follow();
  };

  /** Takes back what may have been sent. */
  takeBack = (turn: Turn): void => {
    this.drop(turn);
    if (typeof turn.input?.content === "string") giveBack(this.key, turn.input.content);
  };

  dismissRefusal = (): void => this.show({ refusal: null });

  private begin(content: string | WireContent[], text: string): void {
    const otid = uuid();
    const shown: WireMessage = { message_type: "user_message", otid, content, date: new Date().toISOString() };
    this.start(shown, [{ role: "user", content, otid }], text);
  }

  private wakeUp(): void {
    void this.load();
    this.poll = window.setInterval(() => {
      if (!document.hidden) void this.join();
    }, POLL_MILLISECONDS);
  }

  private start(input: WireMessage, messages: object[], text: string): void {
    let isAccepted = false;
    const turn: Turn = new Turn(
      input,
      (after, runId, signal) =>
        runId ? backend.attach(runId, after, signal) : backend.send(this.place, messages, signal),
      {
        piece: this.hear,
        change: (refold) => {
          if (turn.runId && !isAccepted) {
            isAccepted = true;
            accepted(this.key);
            this.channel.postMessage(this.key);
          }
          if (refold) this.refold();
          this.show({});
        },
        end: () => void this.end(turn, text),
      },
    );
    this.setTurns([...this.snapshot.turns, turn]);
    this.show({ refusal: null });
    void turn.follow();
  }

  /** Follows runs that others began. */
  private join = async (isNews = false): Promise<void> => {
    let runs: backend.RunInfo[];
    try {
      runs = await backend.activeRuns(this.place);
    } catch {
      return; // The next poll asks again.
    }
    const known = new Set(this.snapshot.turns.map((turn) => turn.runId));
    // One that is being sent has no id yet, and may be among them.
    if (this.snapshot.turns.some((turn) => turn.phase === "sending")) return;
    const news = runs.filter((run) => !known.has(run.id));
    if (!news.length) {
      if (isNews || (this.snapshot.waiting.length && !this.snapshot.turns.length)) await this.refresh();
      return;
    }
    await this.refresh();
    const turns = news.map((run) => this.joined(run.id));
    this.setTurns([...this.snapshot.turns, ...turns]);
    turns.forEach((turn) => void turn.follow());
  };

  private joined(runId: string): Turn {
    const turn: Turn = new Turn(
      null,
      (after, id, signal) => backend.attach(id, after, signal),
      {
        piece: this.hear,
        change: (refold) => {
          if (refold) this.refold();
          this.show({});
        },
        end: () => void this.end(turn, ""),
      },
      runId,
    );
    return turn;
  }

  private async end(turn: Turn, text: string): Promise<void> {
    const ending = turn.ending;
    const problem = ending?.problem;
    if (problem && !turn.chunks.length && (!turn.runId || PENDING.test(problem.sentence))) {
      // Nothing was stored: what was typed goes back.
      this.drop(turn);
      if (text) giveBack(this.key, text);
      this.show({ refusal: problem, attention: this.snapshot.attention + (PENDING.test(problem.sentence) ? 1 : 0) });
      await this.refresh();
      return;
    }
    await this.refresh();
    const endings = new Map(this.snapshot.endings);
    if (ending && turn.runId) endings.set(turn.runId, ending);
    this.keepUnstored(turn);
    this.show({ endings });
    this.drop(turn);
    this.channel.postMessage(this.key);
    if (ending?.reason === "requires_approval") this.show({ attention: this.snapshot.attention + 1 });
  }

  /** What a turn that was cut short said is shown until the page is loaded again, stored or not. */
  private keepUnstored(turn: Turn): void {
    if (turn.ending?.reason !== "cancelled" && !turn.ending?.problem) return;
    const stored = new Set(this.history.map(entryKey));
    this.history = [...this.history, ...turn.chunks.filter((message) => !stored.has(entryKey(message)))];
    if (turn.input && !stored.has(entryKey(turn.input))) this.history.push({ ...turn.input, run_id: turn.runId });
  }

  private drop(turn: Turn): void {
    this.setTurns(this.snapshot.turns.filter((each) => each !== turn));
  }

  private setTurns(turns: readonly Turn[]): void {
    this.snapshot = { ...this.snapshot, turns };
    this.refold();
    this.show({ turns });
  }

  private async refresh(): Promise<void> {
    try {
      this.merge(await backend.page(this.place));
    } catch (error) {
      if (isStatus(error, 401, 403, 404)) this.show({ status: "failed", problem: problemOf(error) });
    }
  }

  /** Puts the newest page in the place of what is known of it. */
  private merge(newest: WireMessage[]): void {
    const keys = new Set(newest.map(entryKey));
    const first = newest[0] && entryKey(newest[0]);
    const at = this.history.findIndex((message) => entryKey(message) === first);
    // Without an overlap there is a gap: what was loaded before is loaded again on demand.
    const older = at < 0 ? [] : this.history.slice(0, at);
    const kept = at < 0 ? [] : this.history.slice(at).filter((message) => message.seq_id && !keys.has(entryKey(message)));
    const hasOlder = at < 0 ? newest.length >= backend.PAGE : this.snapshot.hasOlder;
    this.history = [...older, ...newest, ...kept];
    this.refold();
    this.show({ hasOlder });
  }

  private hear = (message: WireMessage): void => {
    this.pieces.push(message);
    this.frame ||= document.hidden ? window.setTimeout(this.draw, 100) : requestAnimationFrame(this.draw);
  };

  private draw = (): void => {
    this.frame = 0;
    this.thread = extend(this.thread, this.pieces);
    this.pieces = [];
    this.show({});
  };

  /** Makes the thread anew: what is stored but of runs that are followed, then these. */
  private refold(): void {
    const live = new Set(this.snapshot.turns.map((turn) => turn.runId).filter(Boolean));
    const stored = this.history.filter(
      (message) => INPUTS.has(message.message_type ?? "") || !live.has(message.run_id ?? ""),
    );
    const known = new Set(stored.map((message) => message.otid));
    const turns = this.snapshot.turns.flatMap((turn) =>
      turn.input && !known.has(turn.input.otid) ? [turn.input, ...turn.chunks] : turn.chunks,
    );
    this.pieces = [];
    this.thread = extend(EMPTY, [...stored, ...turns]);
  }

  private show(change: Partial<Snapshot>): void {
    const parts = this.thread.parts;
    const isSame = parts === this.snapshot.parts;
    this.snapshot = { ...this.snapshot, ...change, parts };
    if (!isSame || change.turns) this.snapshot.waiting = this.waiting();
    this.listeners.forEach((listener) => listener());
  }

  private waiting(): ToolPart[] {
    const live = new Set(this.snapshot.turns.map((turn) => turn.runId));
    return this.thread.parts.filter(isWaiting).filter((call) => !live.has(call.runId));
  }

  close(): void {
    this.channel.close();
    this.snapshot.turns.forEach((turn) => turn.rest());
  }

  /** Closes connections while the page is hidden, and opens them again. */
  rest(isHidden: boolean): void {
    for (const turn of this.snapshot.turns) {
      if (isHidden) turn.rest();
      else turn.goOn();
    }
    if (!isHidden && this.listeners.size) void this.join();
  }
}

const sessions = new Map<string, Session>();

export function sessionOf(place: Place): Session {
  const key = routeId(place);
  let session = sessions.get(key);
  if (!session) sessions.set(key, (session = new Session(place)));
  return session;
}

/** Forgets all conversations, as when another key is used. */
export function forgetSessions(): void {
  sessions.forEach((session) => session.close());
  sessions.clear();
}

let timer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  const rest = (isHidden: boolean): void => sessions.forEach((session) => session.rest(isHidden));
  if (document.hidden) timer = window.setTimeout(rest, HIDDEN_MILLISECONDS, true);
  else rest(false);
});
