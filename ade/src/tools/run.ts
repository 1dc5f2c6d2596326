import { api } from "../api/client";
import { eventsOf } from "../api/events";
import { uuid } from "../api/ids";
import type { Language, Requirement } from "./tools";

/** What a run of source gave. */
export interface Outcome {
  status: "success" | "error";
  tool_return: string | null;
  stdout: string[] | null;
  stderr: string[] | null;
}

export interface Attempt {
  source_code: string;
  source_type: Language;
  args: Record<string, unknown>;
  env_vars: Record<string, string>;
  pip_requirements: Requirement[];
  npm_requirements: Requirement[];
  network: Record<string, unknown>;
}

const ROUTE = "/v1/tools/run";
const LOOK_MILLISECONDS = 250;
const LONGEST_MILLISECONDS = 600_000;

/** A run of source in the sandbox. `heard` gets what it prints, as it prints it. */
export class SandboxRun {
  private readonly key = uuid();
  private readonly abort = new AbortController();
  private callKey: string | null = null;

  async start(attempt: Attempt, heard: (text: string) => void): Promise<Outcome> {
    this.callKey = await callKeyOf(this.key);
    const listening = this.callKey ? this.listen(heard) : Promise.resolve();
    try {
      const options = { headers: { "Idempotency-Key": this.key }, timeout: LONGEST_MILLISECONDS, maxRetries: 0 };
      return await api().post<Outcome>(ROUTE, { body: attempt, ...options });
    } finally {
      this.abort.abort();
      await listening;
    }
  }

  /** Kills it. */
  async stop(): Promise<void> {
    if (this.callKey) await api().post(`/v1/executions/${this.callKey}/cancel`, { maxRetries: 0 });
  }

  /** Whether its key can be reckoned, so that it can be watched and killed. */
  get canStop(): boolean {
    return typeof crypto.subtle !== "undefined";
  }

  private async listen(heard: (text: string) => void): Promise<void> {
    const options = { signal: this.abort.signal, maxRetries: 0, timeout: LONGEST_MILLISECONDS };
    try {
      // A stream of a call that is not there yet would be a 404, which browsers log.
      while (!(await this.isThere())) await new Promise((resolve) => setTimeout(resolve, LOOK_MILLISECONDS));
      if (this.abort.signal.aborted) return;
      const response = await api().get(`/v1/executions/${this.callKey}/stream`, options).asResponse();
      for await (const { event, data } of eventsOf(response)) {
        if (event === "stdout" || event === "stderr") heard((JSON.parse(data) as { text: string }).text);
      }
    } catch {
      // What it printed comes with the outcome, too.
    }
  }

  /** Returns whether the call has begun, or nobody waits for it any more. */
  private async isThere(): Promise<boolean> {
    if (!this.callKey || this.abort.signal.aborted) return true;
    const { executions } = await api().get<{ executions: { call_key: string }[] }>("/v1/executions", { query: { limit: 20 } });
    return this.abort.signal.aborted || executions.some((each) => each.call_key === this.callKey);
  }
}

/** Returns the key of the call that an Idempotency-Key makes; null where the browser cannot reckon it (plain http). */
export async function callKeyOf(key: string): Promise<string | null> {
  if (typeof crypto.subtle === "undefined") return null;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${ROUTE}\n${key}`));
  return `source/${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
