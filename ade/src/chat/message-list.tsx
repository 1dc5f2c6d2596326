import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { Part } from "./parts";
import { PartMenu } from "./part-menu";
import { PartView } from "./part-view";
import type { Place } from "./place";
import { RunEnd } from "./run-end";
import type { Snapshot } from "./session";

const HEIGHTS: Record<Part["kind"], number> = { user: 60, assistant: 90, thought: 40, tool: 48, note: 40 };
// From so few parts before the oldest on, older ones are asked for.
const EARLY = 8;

interface Props {
  chat: Snapshot;
  place: Place;
  older: () => Promise<void>;
  /** Sends the message of a run again. */
  again: (runId: string) => void;
}

/** What was said, of which only what is in view is drawn. It follows the newest while that is in view. */
export function MessageList({ chat, place, older, again }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const { parts } = chat;
  const list = useVirtualizer({
    count: parts.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => HEIGHTS[parts[at]?.kind ?? "note"],
    getItemKey: (at) => parts[at]?.key ?? at,
    overscan: 6,
    paddingStart: 16,
    paddingEnd: 16,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: 40,
  });
  const items = list.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const isReady = chat.status === "ready";
  const hasParts = parts.length > 0;
  const [isPlaced, setPlaced] = useState(false);
  useEffect(() => {
    if (!isReady || !hasParts) return;
    list.scrollToEnd();
    // Before, the oldest part that is loaded is the first in view.
    const timer = setTimeout(setPlaced, 100, true);
    return () => clearTimeout(timer);
    // At the beginning alone.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [isReady, hasParts]);
  useEffect(() => {
    if (isPlaced && first < EARLY) void older();
  }, [first, isPlaced, older, parts]);
  useEffect(() => {
    const end = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      if (event.key === "End" && !isTyping) list.scrollToEnd();
    };
    addEventListener("keydown", end);
    return () => removeEventListener("keydown", end);
  }, [list]);
  const live = new Set(chat.turns.map((turn) => turn.runId));
  // An answer to a call that waited begins another run.
  const isLive = (part: Part): boolean =>
    live.has(part.runId) || (part.kind === "tool" && part.decision !== null && live.size > 0);
  const isAway = hasParts && list.scrollElement !== null && !list.isAtEnd(120);

  return (
    <div className="messages-box">
      <div className="messages scroller" ref={scroller} tabIndex={0} role="log" aria-live="off" aria-label="Messages">
        {chat.status === "loading" && <p className="empty">Loading ...</p>}
        {isReady && parts.every((part) => part.kind === "note") && <p className="empty">Nothing was said yet. Write the first message below.</p>}
        <div className="message-rows" style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const part = parts[item.index];
            if (!part) return null;
            const ending = parts[item.index + 1]?.runId === part.runId ? undefined : chat.endings.get(part.runId);
            return (
              <div
                key={item.key}
                data-index={item.index}
                ref={list.measureElement}
                className="message-row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <PartView part={part} isLive={isLive(part)} />
                {!isLive(part) && <PartMenu part={part} place={place} />}
                {ending && <RunEnd ending={ending} again={() => again(part.runId)} />}
              </div>
            );
          })}
        </div>
      </div>
      <Announcer parts={parts} isLive={chat.turns.length > 0} />
      {isAway && (
        <button type="button" className="newest" onClick={() => list.scrollToEnd()}>
          <ArrowDown aria-hidden size={14} /> Newest
        </button>
      )}
    </div>
  );
}

/** Reads an answer aloud when it is whole, not in pieces. */
function Announcer({ parts, isLive }: { parts: readonly Part[]; isLive: boolean }) {
  const last = parts.at(-1);
  const wasLive = useRef(isLive);
  const [text, setText] = useState("");
  useEffect(() => {
    if (wasLive.current && !isLive && last?.kind === "assistant") setText(last.text);
    wasLive.current = isLive;
  }, [isLive, last]);
  return <div className="hidden-text" aria-live="polite">{text}</div>;
}
