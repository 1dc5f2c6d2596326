import { X } from "lucide-react";
import { IconButton } from "../ui/icon-button";
import { useConversations } from "./conversation-list";
import type { Place } from "./place";

/** Which of two conversations this is. */
export function ChatHead({ place, close }: { place: Place; close?: () => void }) {
  const conversations = useConversations(place.agentId);
  const title = place.conversationId === null ? "Main" : conversations.data?.find(({ id }) => id === place.conversationId)?.title;
  return (
    <header className="chat-head">
      <h2 className="cut">{title}</h2>
      {close && <IconButton label="Close the chat beside" icon={X} onClick={close} />}
    </header>
  );
}
