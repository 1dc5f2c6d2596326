import { useMemo, useSyncExternalStore } from "react";
import { sessionOf } from "../chat/sessions";
import { Talk } from "../chat/talk";
import { groupBackend } from "./group-backend";

/** What was said in a group, as its agents say it, and what is said to all of them. */
export function GroupChat({ groupId }: { groupId: string }) {
  const session = useMemo(
    () => sessionOf({ agentId: groupId, conversationId: null }, () => groupBackend(groupId)),
    [groupId],
  );
  const chat = useSyncExternalStore(session.subscribe, session.getSnapshot);
  return (
    <section className="chat group-chat" aria-label="Conversation">
      <Talk session={session} chat={chat} place={null} due={null} />
    </section>
  );
}
