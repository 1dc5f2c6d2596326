import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { PANE } from "../shell/panes";
import { useOpenApprovals } from "./approvals";
import { type Place, routeId } from "./place";
import { sessionOf } from "./sessions";
import { Talk } from "./talk";

interface Props {
  place: Place;
  label?: string;
  /** What stands above what was said. */
  head?: ReactNode;
}

/** A conversation with an agent. */
export function Chat({ place, label = "Chat", head }: Props) {
  const key = routeId(place);
  // oxlint-disable-next-line react/exhaustive-deps -- the key is the place
  const session = useMemo(() => sessionOf(place), [key]);
  const chat = useSyncExternalStore(session.subscribe, session.getSnapshot);
  const messageId = place.messageId ?? null;
  useEffect(() => {
    if (messageId) void session.visit(messageId);
    else session.leave();
  }, [session, messageId]);
  useEndOfTurn(chat.turns.length, place.agentId);
  const due = useOpenApprovals(place.agentId).get(place.conversationId)?.due_at ?? null;
  return (
    <section className="chat" aria-label={label} {...PANE}>
      {head}
      <Talk session={session} chat={chat} place={place} due={due} />
    </section>
  );
}

/** What a turn may have changed of its agent, as other panes show it. */
const CHANGED = ["approvals", "context", "checkpoints", "blocks", "passages", "agent-runs", "agent-files"];

/** Has the panes beside the chat and the list of agents ask anew when a turn has ended. */
function useEndOfTurn(turns: number, agentId: string): void {
  const queries = useQueryClient();
  const before = useRef(turns);
  useEffect(() => {
    if (turns < before.current) {
      for (const key of CHANGED) void queries.invalidateQueries({ queryKey: [key, agentId] });
      void queries.invalidateQueries({ queryKey: ["agents"] });
    }
    before.current = turns;
  }, [turns, agentId, queries]);
}
