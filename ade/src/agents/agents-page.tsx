import { Search } from "lucide-react";
import { useDeferredValue, useEffect, useState } from "react";
import { Link, useSearch } from "wouter";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { useCaller, useRefusal } from "../shell/access-gate";
import { PANE } from "../shell/panes";
import { NewButton } from "../ui/new-button";
import { ProblemBox } from "../ui/problem-box";
import { useDoomed } from "./actions";
import { AgentList } from "./agent-list";
import { useAgents, useTags } from "./queries";

/** Finds an agent, or leads to a new one. */
export function AgentsPage() {
  const query = new URLSearchParams(useSearch());
  const tag = query.get("tag") ?? "";
  const [text, setText] = useState(query.get("q") ?? "");
  const caller = useCaller();
  const agents = useAgents(caller, useDeferredValue(text.trim()), tag);
  const refusal = useRefusal("write");
  useEffect(() => remember(text.trim(), tag), [text, tag]);
  const doomed = useDoomed();
  const rows = (agents.data?.pages.flat() ?? []).filter((agent) => !doomed.has(agent.id));

  return (
    <main className="page agents" {...PANE}>
      <title>Agents · Loci</title>
      <header className="bar">
        <h1>Agents</h1>
        <label className="search">
          <Search aria-hidden size={16} />
          <input
            type="search"
            placeholder="Search by name"
            aria-label="Search agents by name"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <TagSelect tag={tag} choose={(chosen) => remember(text.trim(), chosen)} />
        <span className="spacer" />
        <NewButton to="/agents/new" label="New agent" refusal={refusal} />
      </header>
      {agents.isError && (
        <ProblemBox title="Could not load the agents" problem={problemOf(agents.error)} retry={() => void agents.refetch()} />
      )}
      {agents.isPending && <Skeleton />}
      {agents.isSuccess && rows.length === 0 && <Empty isFiltered={Boolean(text || tag)} mayCreate={refusal === null} />}
      {rows.length > 0 && (
        <AgentList
          rows={rows}
          more={() => {
            if (agents.hasNextPage && !agents.isFetchingNextPage) void agents.fetchNextPage();
          }}
        />
      )}
    </main>
  );
}

function remember(text: string, tag: string): void {
  const query = new URLSearchParams({ ...(text && { q: text }), ...(tag && { tag }) }).toString();
  const path = query ? `/agents?${query}` : "/agents";
  if (location.hash !== `#${path}`) navigate(path, { replace: true });
}

function TagSelect({ tag, choose }: { tag: string; choose: (tag: string) => void }) {
  const tags = useTags(useCaller());
  if (!tags.data?.length && !tag) return null;
  return (
    <select aria-label="Only agents with the tag" value={tag} onChange={(event) => choose(event.target.value)}>
      <option value="">All tags</option>
      {[...new Set([...(tags.data ?? []), ...(tag ? [tag] : [])])].map((each) => <option key={each}>{each}</option>)}
    </select>
  );
}

function Skeleton() {
  return (
    <div className="skeleton" aria-busy="true" aria-label="Loading agents">
      {[1, 2, 3, 4].map((row) => <div key={row} />)}
    </div>
  );
}

function Empty({ isFiltered, mayCreate }: { isFiltered: boolean; mayCreate: boolean }) {
  if (isFiltered) return <p className="empty">No agent has this name and tag. Change the search above.</p>;
  return (
    <div className="empty">
      <p>There are no agents yet. An agent remembers what you tell it, and keeps it.</p>
      {mayCreate && <Link className="button primary" href="/agents/new">Create the first agent</Link>}
    </div>
  );
}
