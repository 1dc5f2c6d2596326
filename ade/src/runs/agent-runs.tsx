import { Link } from "wouter";
import type { Place } from "../chat/place";
import { useCheckpoints } from "../time/checkpoints";
import { Loaded } from "../ui/loaded";
import { RowLink } from "../ui/row-link";
import { duration } from "../ui/numbers";
import { ago } from "../ui/time";
import { KeepRequests } from "./keep-requests";
import { useAgentRuns } from "./queries";
import { reasonOf } from "./run-words";
import { StatusMark } from "./status-mark";

/** The newest runs of an agent; those of the conversation that is open by what was asked. */
export function AgentRuns({ place }: { place: Place }) {
  const { agentId } = place;
  const runs = useAgentRuns(agentId);
  const checkpoints = useCheckpoints(place).data?.pages.flat() ?? [];
  const asked = new Map(checkpoints.flatMap(({ kind, run_id, label }) => (kind !== "step" && run_id && label ? [[run_id, label]] : [])));
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
                title={asked.get(run.id) ?? "Run"}
                end={<StatusMark run={run} />}
                note={[ago(run.created_at), duration(run.total_duration_ns), run.background && "background", reasonOf(run)].filter(Boolean).join(" · ")}
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
