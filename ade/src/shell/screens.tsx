import { lazy, Suspense } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { AgentsPage } from "../agents/agents-page";
import { NewAgentPage } from "../agents/new-agent-page";
import { AgentPage } from "../chat/agent-page";
import { isTab, type Tab } from "../chat/side-tabs";
import { ErrorBoundary } from "./error-boundary";
import { Palette } from "./palette";
import { usePanes } from "./panes";
import { Rail } from "./rail";

const BlockPage = lazy(async () => ({ default: (await import("../memory/block-page")).BlockPage }));
const RunsPage = lazy(() => import("../runs/runs-page"));
const ToolsPage = lazy(() => import("../tools/tools-page"));
const McpPage = lazy(() => import("../mcp/mcp-page"));
const FoldersPage = lazy(() => import("../files/folders-page"));
const TemplatesPage = lazy(() => import("../templates/templates-page"));
const GroupsPage = lazy(() => import("../groups/groups-page"));
const ModelsPage = lazy(() => import("../models/models-page"));
const KeysPage = lazy(() => import("../keys/keys-page"));
const UsagePage = lazy(() => import("../usage/usage-page"));

/** The rail, and the screen that the address names. */
export function Screens() {
  const [path] = useLocation();
  usePanes();
  return (
    <div className="shell">
      <Rail at={path} />
      <Palette />
      <ErrorBoundary key={screenOf(path)}>
        <Suspense fallback={<main className="page" aria-busy="true" />}>
          <Switch>
            <Route path="/agents" component={AgentsPage} />
            <Route path="/agents/new" component={NewAgentPage} />
            <Route path="/agents/:id/*?">
              {({ id, "*": rest }) => (
                <AgentPage key={id} agentId={id} conversationId={conversationOf(rest)} beside={besideOf(rest)} messageId={messageOf(rest)} tab={tabOf(rest)} />
              )}
            </Route>
            <Route path="/blocks/:id/v/:versions">
              {({ id, versions }) => <BlockPage blockId={id} versions={versions} />}
            </Route>
            <Route path="/runs/:id?">{({ id }) => <RunsPage runId={id ?? null} />}</Route>
            <Route path="/tools/:id?">{({ id }) => <ToolsPage toolId={id ?? null} />}</Route>
            <Route path="/mcp/:id?">{({ id }) => <McpPage serverId={id ?? null} />}</Route>
            <Route path="/folders/:id?">{({ id }) => <FoldersPage folderId={id ?? null} />}</Route>
            <Route path="/templates/:name?">{({ name }) => <TemplatesPage name={name ?? null} />}</Route>
            <Route path="/groups/:id?">{({ id }) => <GroupsPage groupId={id ?? null} />}</Route>
            <Route path="/models/:id?">{({ id }) => <ModelsPage providerId={id ?? null} />}</Route>
            <Route path="/keys/:id?">{({ id }) => <KeysPage keyId={id ?? null} />}</Route>
            <Route path="/usage" component={UsagePage} />
            <Route><Redirect to="/agents" replace /></Route>
          </Switch>
        </Suspense>
      </ErrorBoundary>
    </div>
  );
}

/** Returns what a fault takes with it: an agent, or a whole screen, whose details have boundaries of their own. */
function screenOf(path: string): string {
  return path.split("/", path.startsWith("/agents/") ? 3 : 2).join("/");
}

/** Returns which of the tabs beside the chat an address names. */
function tabOf(rest: string | undefined): Tab {
  const name = rest?.split("/").at(-1);
  return isTab(name) ? name : "conversations";
}

/** Returns the conversation in the rest of an address; null for the default one. */
function conversationOf(rest: string | undefined): string | null {
  return /^c\/(conv-[^/]+)/.exec(rest ?? "")?.[1] ?? null;
}

/** Returns the conversation that stands beside it; null where none does. */
function besideOf(rest: string | undefined): string | null {
  return /(?:^|\/)beside\/(main|conv-[^/]+)/.exec(rest ?? "")?.[1] ?? null;
}

/** Returns the message at which it is opened; null where none is named. */
function messageOf(rest: string | undefined): string | null {
  return /(?:^|\/)m\/(message-[^/]+)/.exec(rest ?? "")?.[1] ?? null;
}
