import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { type Part, placeOf } from "./parts";
import { PartMenu } from "./part-menu";
import { PartView } from "./part-view";
import type { Place } from "./place";
import { RunEnd } from "./run-end";
import type { Session, Snapshot } from "./session";

const HEIGHTS: Record<Part["kind"], number> = { user: 60, assistant: 90, thought: 40, tool: 48, note: 40 };
// So few parts before the end of what is loaded more is asked for.
const EARLY = 8;
const FOUND = { tabIndex: -1, role: "group", "aria-label": "The message that was found" } as const;

interface Props {
  chat: Snapshot;
  /** Null: of a group, whose parts have no menus. */
  place: Place | null;
  session: Session;
}

/**
 * What was said, of which only what is in view is drawn. It begins at the message that is visited, else at the newest,
 * which it follows while that is in view.
 */
export function MessageList({ chat, place, session }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const { parts, visited, isApart } = chat;
  // The newest are not what is appended to older ones, nor what these are joined with.
  const wasApart = useRef(isApart);
  const list = useVirtualizer({
    count: parts.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => HEIGHTS[parts[at]?.kind ?? "note"],
    getItemKey: (at) => parts[at]?.key ?? at,
    overscan: 6,
    paddingStart: 16,
    paddingEnd: 16,
    anchorTo: "end",
    followOnAppend: !isApart && !wasApart.current,
    scrollEndThreshold: 40,
  });
  const items = list.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const found = useMemo(() => (visited === null ? -1 : placeOf(visited, parts)), [visited, parts]);
  const isReady = chat.status === "ready";
  const hasParts = parts.length > 0;
  const [isPlaced, setPlaced] = useState(false);
  useEffect(() => {
    if (!isReady || !hasParts) return;
    if (found < 0) list.scrollToEnd();
    else list.scrollToIndex(found, { align: "center" });
    // Before, the oldest part that is loaded is the first in view.
    const timer = setTimeout(setPlaced, 100, true);
    return () => clearTimeout(timer);
    // At the beginning alone.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [isReady, hasParts]);
  useEffect(() => {
    if (isPlaced && first < EARLY) void session.loadOlder();
    if (isPlaced && isApart && last >= parts.length - EARLY) void session.loadNewer();
  }, [first, last, isPlaced, isApart, session, parts]);
  useEffect(() => {
    wasApart.current = isApart;
  }, [isApart]);
  const toNewest = useCallback((): void => {
    if (isApart) session.leave();
    else list.scrollToEnd();
  }, [isApart, session, list]);
  useEffect(() => {
    const end = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      if (event.key === "End" && !isTyping) toNewest();
    };
    addEventListener("keydown", end);
    return () => removeEventListener("keydown", end);
  }, [toNewest]);
  // Once: who scrolls back to it later goes on with what is being done.
  const isMet = useRef(false);
  const meet = useCallback(
    (row: HTMLDivElement | null): void => {
      list.measureElement(row);
      if (!row || isMet.current) return;
      isMet.current = true;
      row.focus({ preventScroll: true });
    },
    [list],
  );
  const live = new Set(chat.turns.map((turn) => turn.runId));
  // An answer to a call that waited begins another run.
  const isLive = (part: Part): boolean =>
    live.has(part.runId) || (part.kind === "tool" && part.decision !== null && live.size > 0);
  const isAway = isApart || (hasParts && list.scrollElement !== null && !list.isAtEnd(120));

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
                {...(item.index === found && { ...FOUND, ref: meet })}
                className="message-row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <PartView part={part} isLive={isLive(part)} />
                {place && !isLive(part) && <PartMenu part={part} place={place} />}
                {ending && <RunEnd ending={ending} again={() => session.sendAgain(part.runId)} />}
              </div>
            );
          })}
        </div>
      </div>
      <Announcer parts={parts} isLive={chat.turns.length > 0 && !isApart} />
      {isAway && (
        <button type="button" className="newest" onClick={toNewest}>
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
