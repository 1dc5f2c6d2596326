import { ChevronLeft, PanelLeft } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import { AgentMenu } from "../agents/agent-menu";
import { useAgent } from "../agents/queries";
import { ArchivePane } from "../archive/archive-pane";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { ErrorBoundary } from "../shell/error-boundary";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { Chat } from "./chat";
import { MemoryPane } from "../memory/memory-pane";
import { Conversations } from "./conversations";
import { chatPath, type Place } from "./place";

export type Tab = "conversations" | "memory" | "archive";
const TABS: [Tab, string][] = [
  ["conversations", "Chats"],
  ["memory", "Memory"],
  ["archive", "Archive"],
];

/** One agent: its conversations or its memory, and beside them the conversation that is open. */
export function AgentPage({ agentId, conversationId, tab }: Place & { tab: Tab }) {
  const agent = useAgent(agentId);
  const [isListOpen, setListOpen] = useState(tab !== "conversations");
  if (agent.isError) {
    return (
      <main className="centre">
        <ProblemBox title="Could not load this agent" problem={problemOf(agent.error)} retry={() => void agent.refetch()} />
      </main>
    );
  }
  const agentName = agent.data?.name ?? "";
  return (
    <main className={`agent-page ${tab === "conversations" ? "" : "wide-side"} ${isListOpen ? "list-open" : ""}`}>
      <title>{`${agentName || "Agent"} · Loci`}</title>
      <header className="bar agent-bar">
        <Link href="/agents" className="icon-button narrow-only" aria-label="All agents" title="All agents">
          <ChevronLeft aria-hidden size={18} />
        </Link>
        <h1 className="cut">{agentName}</h1>
        <span className="muted cut model">{agent.data?.model}</span>
        <span className="spacer" />
        <IconButton
          className="narrow-only"
          label="Chats and memory"
          icon={PanelLeft}
          aria-expanded={isListOpen}
          onClick={() => setListOpen(!isListOpen)}
        />
        {agent.data && <AgentMenu agent={agent.data} onDelete={() => navigate("/agents")} />}
      </header>
      <aside className="side" aria-label="Beside the chat">
        <ErrorBoundary>
          <div className="side-tabs" role="tablist" aria-label="Beside the chat">
            {TABS.map(([name, label]) => (
              <button
                key={name}
                type="button"
                role="tab"
                id={`tab-${name}`}
                aria-selected={tab === name}
                aria-controls="side-panel"
                onClick={() => navigate(chatPath({ agentId, conversationId }) + (name === "conversations" ? "" : `/${name}`))}
              >
                {label}
              </button>
            ))}
          </div>
          <div role="tabpanel" id="side-panel" aria-labelledby={`tab-${tab}`}>
            {tab === "memory" && <MemoryPane agentId={agentId} />}
            {tab === "archive" && <ArchivePane agentId={agentId} />}
            {tab === "conversations" && (
              <Conversations place={{ agentId, conversationId }} onChoose={() => setListOpen(false)} />
            )}
          </div>
        </ErrorBoundary>
      </aside>
      <ErrorBoundary>
        <Chat key={conversationId ?? agentId} place={{ agentId, conversationId }} />
      </ErrorBoundary>
    </main>
  );
}
