import { Link } from "wouter";
import { api } from "../api/client";
import { isStatus } from "../api/errors";
import { chatPath } from "../chat/place";
import { useCaller, useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { dollars, duration, percent, whole } from "../ui/numbers";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { KeepRequests } from "./keep-requests";
import { isActive, type Run, useExecutions, useRun, useSteps, useTrace, useUsage } from "./queries";
import { RunMessages } from "./run-messages";
import { reasonOf } from "./run-words";
import { StatusMark } from "./status-mark";
import { StepView } from "./step-view";
import { waterfallOf } from "./waterfall";

/** One run: what was said, its steps with their times, and what it cost. It follows one that goes on. */
export default function RunDetail({ runId, names }: { runId: string; names: ReadonlyMap<string, string> }) {
  const run = useRun(runId);
  if (isStatus(run.error, 404)) return <p className="empty">There is no such run.</p>;
  return <Loaded query={run} what="the run">{(data) => <Detail run={data} agentName={names.get(data.agent_id ?? "")} />}</Loaded>;
}

function Detail({ run, agentName }: { run: Run; agentName: string | undefined }) {
  const isLive = isActive(run);
  const steps = useSteps(run.id, isLive);
  const mayRead = useCaller().rights.includes("read");
  const executions = useExecutions(run.id, mayRead, isLive);
  const mayTrace = useRefusal("read_agent", run.agent_id ?? undefined) === null;
  const trace = useTrace(run.id, mayTrace, isLive);
  const times = waterfallOf(trace.data ?? []);
  const reason = reasonOf(run);
  return (
    <article className="detail run-detail" aria-label="Run">
      <header className="detail-head">
        <h2 className="cut">
          {run.agent_id ? (
            <Link href={chatPath({ agentId: run.agent_id, conversationId: run.conversation_id })}>{agentName ?? run.agent_id}</Link>
          ) : "A deleted agent"}
        </h2>
        <StatusMark run={run} />
        {isLive && <Stop run={run} />}
      </header>
      <p className="muted small">
        {[ago(run.created_at), duration(run.total_duration_ns), run.ttft_ns && `first token after ${duration(run.ttft_ns)}`, run.background && "in the background", reason]
          .filter(Boolean).join(" · ")}
        {" · "}<code>{run.id}</code>
      </p>
      {run.callback_url && <Callback run={run} />}
      <UsageLine runId={run.id} isLive={isLive} />
      <h3>Steps</h3>
      <Loaded query={steps} what="the steps">
        {(all) => (
          <ol className="steps">
            {all.map((step, at) => (
              <StepView
                key={step.id}
                number={at + 1}
                step={step}
                before={all[at - 1] ?? null}
                times={times.steps.get(step.id)}
                length={times.length}
                calls={executions.data?.filter((each) => each.step_id === step.id) ?? []}
              />
            ))}
            {all.length === 0 && <li className="muted small">{isLive ? "The first step goes on." : "It ended before its first step."}</li>}
          </ol>
        )}
      </Loaded>
      <h3>What was said</h3>
      <RunMessages runId={run.id} isLive={isLive} />
      <details className="small">
        <summary>Requests of new messages</summary>
        <KeepRequests />
      </details>
    </article>
  );
}

function Stop({ run }: { run: Run }) {
  const action = useAction();
  const refusal = useRefusal("write_messages", run.agent_id ?? undefined);
  return (
    <>
      <button
        type="button"
        disabled={refusal !== null}
        title={refusal ?? undefined}
        onClick={() => void action.run(() => api().agents.messages.cancel(run.agent_id ?? "", { run_ids: [run.id] }, { maxRetries: 0 }))}
      >
        Stop
      </button>
      {action.problem && <ProblemBox title="Could not stop it" problem={action.problem} />}
    </>
  );
}

function Callback({ run }: { run: Run }) {
  const outcome = run.callback_error ?? (run.callback_status_code ? `answered ${run.callback_status_code}` : "not called yet");
  return <p className="small">Callback <code>{run.callback_url}</code>: {outcome}</p>;
}

function UsageLine({ runId, isLive }: { runId: string; isLive: boolean }) {
  const usage = useUsage(runId, isLive);
  if (!usage.data) return null;
  const { prompt_tokens, completion_tokens, prompt_tokens_details, cost_usd, requests, unpriced_requests, by_model } = usage.data;
  const cached = prompt_tokens_details?.cached_tokens;
  return (
    <dl className="figures">
      <div><dt>Tokens in</dt><dd>{whole(prompt_tokens)}</dd></div>
      <div><dt>of them cached</dt><dd>{typeof cached === "number" ? percent(cached, prompt_tokens) : "not told"}</dd></div>
      <div><dt>Tokens out</dt><dd>{whole(completion_tokens)}</dd></div>
      <div><dt>Model calls</dt><dd>{whole(requests)}</dd></div>
      <div>
        <dt>Cost</dt>
        <dd>{unpriced_requests ? `${dollars(cost_usd ?? 0)} + ${unpriced_requests} without a price` : dollars(cost_usd ?? 0)}</dd>
      </div>
      {by_model && by_model.length > 0 && <div><dt>Models</dt><dd>{by_model.map((each) => each.model).join(", ")}</dd></div>}
    </dl>
  );
}
