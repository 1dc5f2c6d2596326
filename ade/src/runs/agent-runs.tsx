import { Link } from "wouter";
import { Loaded } from "../ui/loaded";
import { RowLink } from "../ui/row-link";
import { duration } from "../ui/numbers";
import { ago } from "../ui/time";
import { KeepRequests } from "./keep-requests";
import { useAgentRuns } from "./queries";
import { reasonOf } from "./run-words";
import { StatusMark } from "./status-mark";

/** The newest runs of an agent. */
export function AgentRuns({ agentId }: { agentId: string }) {
  const runs = useAgentRuns(agentId);
  return (
    <div className="pane">
      <KeepRequests />
      <Loaded query={runs} what="the runs">
        {(all) => (
          <ul className="rows">
            {all.map((run) => (
              <RowLink
                key={run.id}
                to={`/runs/${run.id}?agent=${agentId}`}
                title={ago(run.created_at)}
                end={<StatusMark run={run} />}
                note={[duration(run.total_duration_ns), run.background && "background", reasonOf(run)].filter(Boolean).join(" · ")}
              />
            ))}
            {all.length === 0 && <li className="empty">It has not run yet. Write to it.</li>}
          </ul>
        )}
      </Loaded>
      <Link href={`/runs?agent=${agentId}`} className="small">All runs of this agent</Link>
    </div>
  );
}
