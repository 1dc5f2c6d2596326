import { isStatus, problemOf, type Problem } from "../api/errors";
import { uuid } from "../api/ids";
import { lock } from "../shell/lock";
import { toast } from "../shell/toasts";
import { attach, type Backend, type RunInfo } from "./backend";
import { accepted, giveBack, takeDraft } from "./drafts";
import type { History } from "./history";
import { Pages } from "./pages";
import { isWaiting, type Part, placeOf, type ToolPart } from "./parts";
import { type Place, routeId } from "./place";
import { EMPTY, extend, type Thread } from "./thread";
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
  /** Why the last message was not taken; its text is in the editor again. */
  refusal: Problem | null;
  /** Changes whenever the approval wants the focus. */
  attention: number;
  /** The message at which it was opened last; null: at the newest. */
  visited: string | null;
  /** How often the view was led to another place. */
  visits: number;
  /** Whether what is shown does not reach the newest. */
  isApart: boolean;
}

const POLL_MILLISECONDS = 10_000;
const PENDING = /waiting for approval|PENDING_APPROVAL/;

/** One conversation, which goes on while nobody looks at it. */
export class Session {
  private pages: Pages;
  private thread: Thread = EMPTY;
  /** The thread whose calls that wait are known. */
  private seen: Thread = EMPTY;
  /** Of the passage, where one is shown. */
  private passage: Thread | null = null;
  /** The message that is about to be shown. */
  private wanted = "";
  private loading: Promise<void> | null = null;
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
    refusal: null,
    attention: 0,
    visited: null,
    visits: 0,
    isApart: false,
  };
  private poll = 0;
  private channel = new BroadcastChannel("loci.turns");

  constructor(
    readonly place: Place,
    private readonly backend: Backend,
  ) {
    this.pages = new Pages(backend);
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
      await this.pages.refresh();
      this.refold();
      this.show({ status: "ready", problem: null });
      await this.join();
    } catch (error) {
      if (isStatus(error, 401)) lock();
      if (this.snapshot.status !== "ready") this.show({ status: "failed", problem: problemOf(error) });
    }
  };

  /** Reads the conversation anew, after it went to another place. */
  startOver = async (): Promise<void> => {
    this.pages = new Pages(this.backend);
    this.show({ endings: new Map(), refusal: null });
    await this.load();
    this.channel.postMessage(this.key);
  };

  loadOlder = async (): Promise<void> => this.showMore(await this.pages.loadOlder());

  loadNewer = async (): Promise<void> => this.showMore(await this.pages.loadNewer());

  /** Shows a message and what was said around it. */
  visit = async (messageId: string): Promise<void> => {
    this.wanted = messageId;
    await this.loading;
    if (this.snapshot.status !== "ready") return;
    try {
      const isShown = placeOf(messageId, this.snapshot.parts) >= 0;
      const passage = isShown ? this.pages.passage : await this.pages.around(messageId);
      // Who asked may have gone elsewhere in the meantime.
      if (this.wanted === messageId) this.goTo(passage, messageId);
    } catch (error) {
      toast(`Could not open the message: ${problemOf(error).sentence}`);
    }
  };

  /** Shows the newest again. */
  leave = (): void => {
    this.wanted = "";
    if (this.pages.passage) this.goTo(null, null);
  };

  /** Sends what the editor holds. */
  send = (content: string | WireContent[], text: string): void => {
    takeDraft(this.key);
    this.begin(content, text);
  };

  /** Sends the message of a run that failed as a new one. */
  sendAgain = (runId: string): void => {
    const failed = this.pages.newest.sentTo(runId);
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
      await this.backend.cancel(turn.runId);
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

  private goTo(passage: History | null, visited: string | null): void {
    this.pages.passage = passage;
    this.refold();
    this.show({ visited, visits: this.snapshot.visits + 1 });
  }

  private showMore(isMore: boolean): void {
    if (!isMore) return;
    this.refold();
    this.show({});
  }

  private begin(content: string | WireContent[], text: string): void {
    const otid = uuid();
    const shown: WireMessage = { message_type: "user_message", otid, content, date: new Date().toISOString() };
    this.start(shown, [{ role: "user", content, otid }], text);
  }

  private wakeUp(): void {
    this.loading = this.load();
    this.poll = window.setInterval(() => {
      if (!document.hidden) void this.join();
    }, POLL_MILLISECONDS);
  }

  private start(input: WireMessage, messages: object[], text: string): void {
    this.leave();
    let isAccepted = false;
    const turn: Turn = new Turn(
      input,
      (after, runId, signal) =>
        runId ? attach(runId, after, signal) : this.backend.send(messages, signal),
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
    let runs: RunInfo[];
    try {
      runs = await this.backend.activeRuns();
    } catch {
      return; // The next poll asks again.
    }
    const isIdle = this.snapshot.waiting.length > 0 && !this.snapshot.turns.length;
    if (!isNews && !isIdle && !this.unfollowed(runs).length) return;
    await this.refresh();
    // Asked anew: another call of this may have come first.
    const turns = this.unfollowed(runs).map((run) => this.joined(run.id));
    if (!turns.length) return;
    this.setTurns([...this.snapshot.turns, ...turns]);
    turns.forEach((turn) => void turn.follow());
  };

  private unfollowed(runs: RunInfo[]): RunInfo[] {
    const { turns, endings } = this.snapshot;
    // One that is being sent has no id yet, and may be among them.
    if (turns.some((turn) => !turn.runId)) return [];
    return runs.filter((run) => !endings.has(run.id) && turns.every((turn) => turn.runId !== run.id));
  }

  private joined(runId: string): Turn {
    const turn: Turn = new Turn(
      null,
      (after, id, signal) => attach(id, after, signal),
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
      // The key is no longer known: the text waits in the editor.
      if (problem.status === 401) lock();
      this.show({ refusal: problem, attention: this.snapshot.attention + (PENDING.test(problem.sentence) ? 1 : 0) });
      await this.refresh();
      return;
    }
    const isStored = await this.refresh();
    const endings = new Map(this.snapshot.endings);
    if (ending && turn.runId) endings.set(turn.runId, ending);
    // What a turn that was cut short said is shown until the page is loaded again.
    if (!isStored || ending?.reason === "cancelled" || problem) this.pages.newest.keep(turn);
    this.show({ endings });
    this.drop(turn);
    this.channel.postMessage(this.key);
    if (ending?.reason === "requires_approval") this.show({ attention: this.snapshot.attention + 1 });
  }

  private drop(turn: Turn): void {
    this.setTurns(this.snapshot.turns.filter((each) => each !== turn));
  }

  private setTurns(turns: readonly Turn[]): void {
    this.snapshot = { ...this.snapshot, turns };
    this.refold();
    this.show({ turns });
  }

  /** Returns whether the newest page could be had. */
  private async refresh(): Promise<boolean> {
    try {
      await this.pages.refresh();
      this.refold();
      this.show({});
      return true;
    } catch (error) {
      if (isStatus(error, 401)) lock();
      if (isStatus(error, 403, 404)) this.show({ status: "failed", problem: problemOf(error) });
      return false;
    }
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

  private refold(): void {
    this.pieces = [];
    this.thread = this.pages.newest.fold(this.snapshot.turns);
    this.passage = this.pages.passage?.fold([]) ?? null;
  }

  private show(change: Partial<Snapshot>): void {
    const { parts } = this.passage ?? this.thread;
    this.snapshot = { ...this.snapshot, ...change, parts, isApart: this.passage !== null };
    if (this.thread !== this.seen || change.turns) this.snapshot.waiting = this.waiting();
    this.seen = this.thread;
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
