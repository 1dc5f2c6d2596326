import { Check, LoaderCircle, OctagonX } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { problemOf } from "../api/errors";

interface Happening {
  event: string;
  message?: string;
  url?: string;
}

const WORDS: Record<string, string> = {
  connection_attempt: "Asking the server",
  oauth_required: "The server asks you to sign in",
  authorization_url: "It named the page where you agree",
  waiting_for_auth: "Waiting until you have agreed",
  success: "Connected",
  error: "It failed",
};

const LONGEST_MILLISECONDS = 600_000;

/** Connects to a server, step by step: where it asks, a person signs in at its page. */
export function Connect({ serverId, isNeeded, done }: { serverId: string; isNeeded: boolean; done: () => Promise<unknown> }) {
  const [steps, setSteps] = useState<Happening[] | null>(null);
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async (): Promise<void> => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    const heard: Happening[] = [];
    setSteps([]);
    const hear = (happening: Happening): void => {
      // It says again and again that it waits.
      if (heard.at(-1)?.event !== happening.event) heard.push(happening);
      setSteps([...heard]);
    };
    try {
      const options = { stream: true as const, signal: mine.signal, maxRetries: 0, timeout: LONGEST_MILLISECONDS };
      const events = (await api().get(`/v1/mcp-servers/connect/${serverId}`, options)) as AsyncIterable<Happening>;
      for await (const each of events) hear(each);
      await done();
    } catch (error) {
      if (!mine.signal.aborted) hear({ event: "error", message: problemOf(error).sentence });
    }
  };
  const url = steps?.find((each) => each.url)?.url;
  const last = steps?.at(-1)?.event;
  return (
    <section aria-label="Connect" className="connect">
      <button type="button" className={isNeeded ? "primary" : ""} onClick={() => void start()}>
        {isNeeded ? "Sign in" : "Check the connection"}
      </button>
      {steps && (
        <ol className="steps-taken small" aria-live="polite">
          {steps.map((each, at) => <Step key={at} happening={each} isLast={at === steps.length - 1} />)}
        </ol>
      )}
      {url && last !== "success" && last !== "error" && /^https?:/.test(url) && (
        <a className="button primary" href={url} target="_blank" rel="noopener noreferrer">Open the page of the server</a>
      )}
    </section>
  );
}

/** A step on the way: done, failed, or being done. */
function Step({ happening: { event, message }, isLast }: { happening: Happening; isLast: boolean }) {
  const isFailed = event === "error";
  const isDone = !isLast || event === "success";
  const Picture = isFailed ? OctagonX : isDone ? Check : LoaderCircle;
  return (
    <li className={isFailed ? "error-text" : isDone ? "is-done" : "is-waiting"}>
      <Picture aria-hidden size={14} />
      <span>{WORDS[event] ?? event}{isFailed && message ? `: ${message}` : ""}</span>
    </li>
  );
}
