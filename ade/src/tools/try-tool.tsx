import { useEffect, useRef, useState } from "react";
import { problemOf, type Problem } from "../api/errors";
import { readDraft, writeDraft } from "../ui/form-draft";
import { ProblemBox } from "../ui/problem-box";
import { TextBlock, pretty } from "../ui/text-block";
import { type Outcome, SandboxRun } from "./run";
import type { Fields } from "./tool-fields";
import { objectOf, requirementsOf, sampleOf, type Schema, variablesOf } from "./tools";

/** Runs the source as it stands, in the sandbox. Ctrl+Enter runs it; nothing else does. */
export function TryTool({ name, fields, schema }: { name: string; fields: Fields; schema: Schema | null }) {
  const place = `try-${name}`;
  const [typed, setTyped] = useState<string | null>(() => readDraft(place)["args"] ?? null);
  const args = typed ?? sampleOf(schema);
  const [output, setOutput] = useState("");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [running, setRunning] = useState<SandboxRun | null>(null);
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  const start = async (): Promise<void> => {
    if (running) return;
    const run = new SandboxRun();
    setRunning(run);
    setOutput("");
    setOutcome(null);
    setProblem(null);
    try {
      const attempt = {
        source_code: fields.code,
        source_type: fields.language,
        args: objectOf(args, "The arguments"),
        env_vars: variablesOf(fields.variables),
        pip_requirements: requirementsOf(fields.pip),
        npm_requirements: requirementsOf(fields.npm),
        network: objectOf(fields.network, "The network"),
      };
      const done = await run.start(attempt, (text) => setOutput((before) => before + text));
      if (!isGone.current) setOutcome(done);
    } catch (error) {
      if (!isGone.current) setProblem(problemOf(error));
    }
    if (!isGone.current) setRunning(null);
  };
  return (
    <section className="try" aria-label="Try it">
      <h3>Try it</h3>
      <label className="field">
        <span>Arguments, as JSON</span>
        <textarea
          className="code"
          rows={4}
          value={args}
          onChange={(event) => {
            setTyped(event.target.value);
            writeDraft(place, { args: event.target.value });
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void start();
          }}
        />
      </label>
      <div className="block-end">
        <button type="button" className="primary" aria-disabled={running !== null} title="Run (Ctrl+Enter)" onClick={() => void start()}>
          {running ? "Running ..." : "Run in the sandbox"}
        </button>
        {running?.canStop && (
          <button type="button" onClick={() => void running.stop().catch((error: unknown) => setProblem(problemOf(error)))}>Stop</button>
        )}
        <span className="muted small">It runs as it stands above. What it does outside stays done.</span>
      </div>
      {problem && <ProblemBox title="It could not be run" problem={problem} />}
      <div aria-live="polite">
        {running && output && <TextBlock label="Output" text={output} />}
        {outcome && <OutcomeView outcome={outcome} />}
      </div>
    </section>
  );
}

function OutcomeView({ outcome }: { outcome: Outcome }) {
  const out = outcome.stdout?.join("\n");
  const err = outcome.stderr?.join("\n");
  return (
    <div className="tool-body outcome" data-status={outcome.status}>
      <TextBlock label={outcome.status === "success" ? "Result" : "It failed"} text={pretty(outcome.tool_return ?? "")} />
      {out && <TextBlock label="Output" text={out} />}
      {err && <TextBlock label="Error output" text={err} />}
    </div>
  );
}
