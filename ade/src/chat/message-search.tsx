import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { Loaded } from "../ui/loaded";
import { ago } from "../ui/time";
import { chatPath, type Place } from "./place";
import { sessionOf } from "./sessions";

/** A message that was found. */
interface Found {
  message_id: string;
  message_type: string;
  content: string | { text?: string }[];
  conversation_id: string | null;
  created_at: string;
}

const MOST = 20;
const SPEAKERS: Record<string, string> = { user_message: "You", assistant_message: "Agent", tool_return_message: "Tool" };

interface Props {
  /** Where the person is who searches. */
  place: Place;
  onChoose: () => void;
}

/** Finds what was said in any conversation of an agent, by meaning and by words. */
export function MessageSearch({ place, onChoose }: Props) {
  const [query, setQuery] = useState("");
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    setQuery(String(new FormData(event.currentTarget).get("query")).trim());
  };
  return (
    <search className="message-search">
      <form onSubmit={submit}>
        <input
          type="search"
          name="query"
          aria-label="Search what was said"
          placeholder="Search what was said"
          onChange={(event) => {
            if (!event.target.value) setQuery("");
          }}
        />
      </form>
      {query && <Results place={place} query={query} onChoose={onChoose} />}
    </search>
  );
}

function Results({ place, query, onChoose }: Props & { query: string }) {
  const { agentId } = place;
  const found = useQuery({
    queryKey: ["message-search", agentId, query],
    queryFn: async () => (await api().messages.search({ query, agent_id: agentId, limit: MOST }, { maxRetries: 0 })) as unknown as Found[],
  });
  const choose = (target: Place): void => {
    onChoose();
    // An address that stays the same leads nowhere.
    if (chatPath(target) === chatPath(place) && target.messageId) void sessionOf(target).visit(target.messageId);
  };
  return (
    <Loaded query={found} what="what was found">
      {(all) => (
        <ul className="rows" aria-label="What was found">
          {all.map((each) => {
            const target = { ...place, conversationId: each.conversation_id, messageId: each.message_id };
            return (
              <li key={each.message_id}>
                <Link href={chatPath(target)} className="row-link" onClick={() => choose(target)}>
                  <span className="row-line muted small"><span>{SPEAKERS[each.message_type] ?? "System"}</span><span>{ago(each.created_at)}</span></span>
                  <span className="found-text">{textOf(each)}</span>
                </Link>
              </li>
            );
          })}
          {all.length === 0 && <li className="muted small">Nothing like it was said.</li>}
        </ul>
      )}
    </Loaded>
  );
}

function textOf({ content }: Found): string {
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join(" ");
}
