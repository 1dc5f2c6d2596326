import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../api/client";
import { allPages } from "../api/pages";
import { attach } from "../chat/backend";
import type { Part } from "../chat/parts";
import { PartView } from "../chat/part-view";
import { EMPTY, extend } from "../chat/thread";
import type { WireMessage } from "../chat/wire";
import { Loaded } from "../ui/loaded";

/** What was said in a run; as it comes, while the run goes on. */
export function RunMessages({ runId, isLive }: { runId: string; isLive: boolean }) {
  const stored = useQuery({
    queryKey: ["run-messages", runId, isLive],
    queryFn: () => allPages(async (query) => (await api().runs.messages.list(runId, query)).items as unknown as WireMessage[]),
    placeholderData: (before) => before,
  });
  const live = useLive(runId, isLive);
  return (
    <Loaded query={stored} what="the messages">
      {(messages) => {
        // The stream does not repeat what was sent.
        const inputs = messages.filter((each) => each.message_type === "user_message");
        const parts: readonly Part[] = extend(EMPTY, isLive ? [...inputs, ...live] : messages).parts;
        return (
          <div className="run-messages">
            {parts.map((part) => <PartView key={part.key} part={part} isLive={isLive} />)}
            {parts.length === 0 && <p className="muted small">Nothing yet.</p>}
          </div>
        );
      }}
    </Loaded>
  );
}

/** The pieces of a run's stream, from its beginning. */
function useLive(runId: string, isLive: boolean): readonly WireMessage[] {
  const [messages, setMessages] = useState<readonly WireMessage[]>([]);
  useEffect(() => {
    if (!isLive) return;
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      const heard: WireMessage[] = [];
      let frame = 0;
      for await (const message of await attach(runId, 0, abort.signal)) {
        heard.push(message);
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          setMessages([...heard]);
        });
      }
    };
    // A stream that breaks is no loss: the run is asked for again, and its messages when it has ended.
    read().catch(() => undefined);
    return () => abort.abort();
  }, [runId, isLive]);
  return messages;
}
