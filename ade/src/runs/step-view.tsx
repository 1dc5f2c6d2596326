import { useState } from "react";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { duration, percent, whole } from "../ui/numbers";
import { TextBlock, written } from "../ui/text-block";
import { type Execution, type Step, useProviderTrace, useReceipt } from "./queries";
import { type Bar, causeOf, sameMessages, type StepTimes } from "./waterfall";

interface Props {
  number: number;
  step: Step;
  before: Step | null;
  times: StepTimes | undefined;
  /** Of the whole run, in nanoseconds. */
  length: number;
  calls: Execution[];
}

/** A step: when model and tools were at work, its tokens, and what the provider was asked. */
export function StepView({ number, step, before, times, length, calls }: Props) {
  const [isOpen, setOpen] = useState(false);
  const cause = causeOf(step.error_type, step.error_data);
  return (
    <li className={`step ${step.status ?? ""}`} data-status={step.status}>
      <button type="button" className="step-line" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span>Step {number}</span>
        <Track bars={times?.bars ?? []} length={length} />
        <span className="muted small">{duration(times?.length) || step.status}</span>
      </button>
      {cause && <p className="error-text small" role="note">{cause}</p>}
      {isOpen && (
        <div className="version-body">
          <p className="small">
            <code>{step.model_handle || step.model}</code>
            {times?.bars.map((bar) => ` · ${bar.kind === "model" ? "model" : bar.label} ${duration(bar.length)}`)}
            {times && times.attempts > 1 ? ` · ${times.attempts} attempts` : ""}
          </p>
          <Tokens step={step} />
          {calls.map((call) => <Call key={call.call_key} call={call} />)}
          <Requests stepId={step.id} beforeId={before?.id ?? null} />
          {step.trace_id && <p className="muted small">Trace <code>{step.trace_id}</code></p>}
        </div>
      )}
    </li>
  );
}

/** A line of time on which model and tools stand. */
function Track({ bars, length }: { bars: Bar[]; length: number }) {
  const at = (nanoseconds: number): number => (nanoseconds / Math.max(length, 1)) * 1000;
  return (
    <svg className="track" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden>
      {bars.map((each) => (
        <rect key={`${each.kind} ${each.from}`} className={each.kind} x={at(each.from)} y={1} width={Math.max(at(each.length), 4)} height={10} />
      ))}
    </svg>
  );
}

/** What of the prompt came from a cache, and what was new. */
function Tokens({ step }: { step: Step }) {
  const { prompt_tokens: all, cached_input_tokens: cached, cache_write_tokens: written_, completion_tokens: out } = step;
  const share = (tokens: number | null): number => ((tokens ?? 0) / Math.max(all, 1)) * 1000;
  return (
    <>
      <svg className="window-bar thin" viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label={`Of ${whole(all)} tokens of the prompt ${cached === null ? "the provider does not tell how many were cached" : `${whole(cached)} were cached`}.`}>
        <rect className="fill-messages" x={0} y={0} width={1000} height={12} />
        <rect className="fill-memory" x={0} y={0} width={share(cached)} height={12} />
        <rect className="fill-tools" x={share(cached)} y={0} width={share(written_)} height={12} />
      </svg>
      <p className="small">
        {whole(all)} tokens in (cached: {cached === null ? "not told" : `${whole(cached)}, ${percent(cached, all)}`}
        {written_ ? `; written to the cache: ${whole(written_)}` : ""}), {whole(out)} out
        {step.reasoning_tokens ? `, of them ${whole(step.reasoning_tokens)} of thoughts` : ""}
        {step.context_window_limit ? ` · ${percent(all, step.context_window_limit)} of the window` : ""}
      </p>
    </>
  );
}

function Requests({ stepId, beforeId }: { stepId: string; beforeId: string | null }) {
  const refusal = useRefusal("read_agent");
  const trace = useProviderTrace(stepId);
  const earlier = useProviderTrace(beforeId);
  if (refusal) return <p className="muted small">{refusal}</p>;
  return (
    <Loaded query={trace} what="the request">
      {(kept) =>
        kept ? (
          <>
            <Same of={sameMessages(earlier.data?.request_json, kept.request_json)} />
            <TextBlock label="Request to the provider" text={written(kept.request_json)} />
            <TextBlock label={`Answer${kept.latency_ms ? ` after ${kept.latency_ms} ms` : ""}`} text={written(kept.response_json)} />
          </>
        ) : (
          <p className="muted small">The request to the provider was not kept. Choose "Keep the provider's requests" below, and send a message.</p>
        )}
    </Loaded>
  );
}

/** How much of a request the step before had sent already: the cache of a provider reaches no further. */
function Same({ of }: { of: ReturnType<typeof sameMessages> }) {
  if (!of) return null;
  return <p className="small">Of its {of.all} messages the first {of.same} are those of the step before: a cache reaches as far.</p>;
}

/** A call of a tool in the sandbox: its state, and what it printed. */
function Call({ call }: { call: Execution }) {
  const [isOpen, setOpen] = useState(false);
  const took = call.started_at && call.ended_at ? (Date.parse(call.ended_at) - Date.parse(call.started_at)) * 1e6 : null;
  return (
    <div className="call">
      <button type="button" className="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <code>{call.tool_name}</code> {call.outcome ?? call.state} <span className="muted small">{duration(took)} {call.sandbox}</span>
      </button>
      {isOpen && <ReceiptView callKey={call.call_key} />}
    </div>
  );
}

function ReceiptView({ callKey }: { callKey: string }) {
  const receipt = useReceipt(callKey);
  return (
    <Loaded query={receipt} what="the receipt">
      {(data) => (
        <>
          <TextBlock label="Result" text={data.tool_return} />
          {data.stdout && <TextBlock label="Output" text={data.stdout} />}
          {data.stderr && <TextBlock label="Error output" text={data.stderr} />}
        </>
      )}
    </Loaded>
  );
}
