import { lazy, Suspense } from "react";
import { useSearch } from "wouter";
import { useAgents } from "../agents/queries";
import { problemOf } from "../api/errors";
import { navigate } from "../router";
import { useCaller } from "../shell/access-gate";
import { ProblemBox } from "../ui/problem-box";
import { RowLink } from "../ui/row-link";
import { Split } from "../ui/split";
import { duration } from "../ui/numbers";
import { ago } from "../ui/time";
import { type Run, useRuns } from "./queries";
import { reasonOf } from "./run-words";
import { StatusMark } from "./status-mark";

const RunDetail = lazy(() => import("./run-detail"));

/** Runs of all agents: what goes on, and what failed. */
export default function RunsPage({ runId }: { runId: string | null }) {
  const search = useSearch();
  const query = new URLSearchParams(search);
  const filter = { status: query.get("status") ?? "", agent: query.get("agent") ?? "" };
  const caller = useCaller();
  const runs = useRuns(caller, filter);
  const agents = useAgents(caller, "", "");
  const names = new Map(agents.data?.pages.flat().map((each) => [each.id, each.name]));
  const all = runs.data?.pages.flat() ?? [];
  const suffix = search ? `?${search}` : "";
  const choose = (name: string, value: string): void => {
    const next = new URLSearchParams(search);
    if (value) next.set(name, value);
    else next.delete(name);
    navigate(`/runs?${next.toString()}`, { replace: true });
  };
  return (
    <Split
      title="Runs"
      to={`/runs${suffix}`}
      hint="Choose a run: its steps, times, tokens and costs, and what the provider was asked."
      head={
        <>
          <select aria-label="Only runs with the status" value={filter.status} onChange={(event) => choose("status", event.target.value)}>
            <option value="">All statuses</option>
            {["created", "running", "completed", "failed", "cancelled"].map((each) => <option key={each}>{each}</option>)}
          </select>
          <select aria-label="Only runs of the agent" value={filter.agent} onChange={(event) => choose("agent", event.target.value)}>
            <option value="">All agents</option>
            {filter.agent && !names.has(filter.agent) && <option value={filter.agent}>{filter.agent}</option>}
            {[...names].map(([id, name]) => <option key={id} value={id}>{name}</option>)}
          </select>
        </>
      }
      list={
        <>
          {runs.isError && <ProblemBox title="Could not load the runs" problem={problemOf(runs.error)} retry={() => void runs.refetch()} />}
          <ul className="rows">
            {all.map((run) => (
              <RowLink
                key={run.id}
                to={`/runs/${run.id}${suffix}`}
                isOpen={run.id === runId}
                title={names.get(run.agent_id ?? "") ?? run.agent_id ?? "A deleted agent"}
                end={<StatusMark run={run} />}
                note={noteOf(run)}
              />
            ))}
            {runs.isSuccess && all.length === 0 && (
              <li className="empty">{search ? "No run fits. Change what is chosen above." : "No agent has run yet. Write to one, and its run stands here."}</li>
            )}
          </ul>
          {runs.hasNextPage && (
            <button type="button" className="more" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>Show older runs</button>
          )}
        </>
      }
      detail={runId ? <Suspense fallback={null}><RunDetail key={runId} runId={runId} names={names} /></Suspense> : null}
    />
  );
}

function noteOf(run: Run): string {
  return [ago(run.created_at), duration(run.total_duration_ns), run.background && "background", reasonOf(run)].filter(Boolean).join(" · ");
}
