import { Redirect, Route, Switch, useLocation } from "wouter";
import { AgentsPage } from "../agents/agents-page";
import { NewAgentPage } from "../agents/new-agent-page";
import { AgentPage, type Tab } from "../chat/agent-page";
import { BlockPage } from "../memory/block-page";
import { ErrorBoundary } from "./error-boundary";
import { Rail } from "./rail";

/** The rail, and the screen that the address names. */
export function Screens() {
  const [path] = useLocation();
  return (
    <div className="shell">
      <Rail at={path} />
      <ErrorBoundary key={path.split("/", 3).join("/")}>
        <Switch>
          <Route path="/agents" component={AgentsPage} />
          <Route path="/agents/new" component={NewAgentPage} />
          <Route path="/agents/:id/*?">
            {({ id, "*": rest }) => <AgentPage key={id} agentId={id} conversationId={conversationOf(rest)} tab={tabOf(rest)} />}
          </Route>
          <Route path="/blocks/:id/v/:versions">
            {({ id, versions }) => <BlockPage blockId={id} versions={versions} />}
          </Route>
          <Route><Redirect to="/agents" replace /></Route>
        </Switch>
      </ErrorBoundary>
    </div>
  );
}

/** Returns which of the tabs beside the chat an address names. */
function tabOf(rest: string | undefined): Tab {
  const name = rest?.split("/").at(-1);
  return name === "memory" || name === "archive" ? name : "conversations";
}

/** Returns the conversation in the rest of an address; null for the default one. */
function conversationOf(rest: string | undefined): string | null {
  return /^c\/(conv-[^/]+)/.exec(rest ?? "")?.[1] ?? null;
}
