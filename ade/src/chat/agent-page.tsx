import { ChevronLeft, MessagesSquare } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { AgentMenu } from "../agents/agent-menu";
import { useAgent } from "../agents/queries";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { ErrorBoundary } from "../shell/error-boundary";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { Chat } from "./chat";
import { Conversations } from "./conversations";
import type { Place } from "./place";

/** One agent: its conversations, and the one that is open. */
export function AgentPage({ agentId, conversationId }: Place) {
  const agent = useAgent(agentId);
  const [isListOpen, setListOpen] = useState(false);
  if (agent.isError) {
    return (
      <main className="centre">
        <ProblemBox title="Could not load this agent" problem={problemOf(agent.error)} retry={() => void agent.refetch()} />
      </main>
    );
  }
  const name = agent.data?.name ?? "";
  return (
    <main className={`agent-page ${isListOpen ? "list-open" : ""}`}>
      <title>{`${name || "Agent"} · Loci`}</title>
      <header className="bar agent-bar">
        <Link href="/agents" className="icon-button narrow-only" aria-label="All agents" title="All agents">
          <ChevronLeft aria-hidden size={18} />
        </Link>
        <h1 className="cut">{name}</h1>
        <span className="muted cut model">{agent.data?.model}</span>
        <span className="spacer" />
        <IconButton
          className="narrow-only"
          label="Conversations"
          icon={MessagesSquare}
          aria-expanded={isListOpen}
          onClick={() => setListOpen(!isListOpen)}
        />
        {agent.data && <AgentMenu agent={agent.data} onDelete={() => navigate("/agents")} />}
      </header>
      <aside className="side" aria-label="Conversations">
        <ErrorBoundary>
          <Conversations place={{ agentId, conversationId }} onChoose={() => setListOpen(false)} />
        </ErrorBoundary>
      </aside>
      <ErrorBoundary>
        <Chat key={conversationId ?? agentId} place={{ agentId, conversationId }} />
      </ErrorBoundary>
    </main>
  );
}
