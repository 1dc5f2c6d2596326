import { ChevronLeft, PanelLeft } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import { Link, useSearch } from "wouter";
import { AgentMenu } from "../agents/agent-menu";
import { useAgent } from "../agents/queries";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { ErrorBoundary } from "../shell/error-boundary";
import { PANE } from "../shell/panes";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { Chat } from "./chat";
import { ChatHead } from "./chat-head";
import { Conversations } from "./conversations";
import { chatPath, type Place, placeBeside, routeId } from "./place";
import { SideTabs, type Tab, TABS } from "./side-tabs";

/** One agent: its conversations or its memory, and beside them the conversation that is open. */
export function AgentPage({ agentId, conversationId, beside = null, messageId = null, tab }: Place & { tab: Tab }) {
  const agent = useAgent(agentId);
  const [isListOpen, setListOpen] = useState(tab !== "conversations");
  const search = useSearch();
  // On narrow screens what an address names is shown, the chat behind it.
  useEffect(() => {
    if (tab !== "conversations") setListOpen(true);
  }, [tab, search]);
  if (agent.isError) {
    return (
      <main className="centre">
        <ProblemBox title="Could not load this agent" problem={problemOf(agent.error)} retry={() => void agent.refetch()} />
      </main>
    );
  }
  const place = { agentId, conversationId, beside, messageId };
  const other = placeBeside(place);
  const { Pane } = TABS[tab];
  const agentName = agent.data?.name ?? "";
  return (
    <main className={`agent-page ${isListOpen ? "list-open" : ""} ${other ? "has-beside" : ""}`}>
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
          label="Chats, memory and more"
          icon={PanelLeft}
          aria-expanded={isListOpen}
          onClick={() => setListOpen(!isListOpen)}
        />
        {agent.data && <AgentMenu agent={agent.data} onDelete={() => navigate("/agents")} />}
      </header>
      <aside className="side" aria-label="Beside the chat" {...PANE}>
        <ErrorBoundary>
          <SideTabs place={place} tab={tab} />
        </ErrorBoundary>
        <ErrorBoundary key={tab}>
          <div role="tabpanel" id="side-panel" aria-labelledby={`tab-${tab}`}>
            <Suspense fallback={null}>
              {Pane ? <Pane place={place} /> : <Conversations place={place} onChoose={() => setListOpen(false)} />}
            </Suspense>
          </div>
        </ErrorBoundary>
      </aside>
      <ErrorBoundary>
        <Chat key={conversationId ?? agentId} place={place} head={other && <ChatHead place={place} />} />
      </ErrorBoundary>
      {other && (
        <ErrorBoundary key={routeId(other)}>
          <Chat
            label="Chat beside"
            place={other}
            head={<ChatHead place={other} close={() => navigate(chatPath({ agentId, conversationId }))} />}
          />
        </ErrorBoundary>
      )}
    </main>
  );
}
