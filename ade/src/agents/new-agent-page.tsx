import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { problemOf, type Problem } from "../api/errors";
import { navigate } from "../router";
import { Field } from "../ui/field";
import { ProblemBox } from "../ui/problem-box";
import { importAgent } from "./actions";
import { useModels, useTemplates } from "./queries";

type Source = "scratch" | "template" | "file";
const SOURCES: [Source, string][] = [
  ["scratch", "From scratch"],
  ["template", "From a template"],
  ["file", "From a file (.af)"],
];

/** Makes an agent of what the form says. Returns its id. */
type Make = (form: FormData) => Promise<string>;

const MAKE: Record<Source, Make> = { scratch, template, file };

async function scratch(form: FormData): Promise<string> {
  const text = (name: string): string => String(form.get(name) ?? "").trim();
  const tags = text("tags").split(",").map((tag) => tag.trim()).filter(Boolean);
  const body = {
    ...(text("name") && { name: text("name") }),
    ...(text("model") && { model: text("model") }),
    ...(tags.length && { tags }),
    memory_blocks: [
      { label: "human", value: text("human") },
      { label: "persona", value: text("persona") },
    ],
  };
  return (await api().agents.create(body as never, { maxRetries: 0 })).id;
}

async function template(form: FormData): Promise<string> {
  const version = `${String(form.get("template"))}:latest`;
  const name = String(form.get("name") ?? "").trim();
  const body = name ? { agent_name: name } : {};
  const answer = await api().templates.agents.create(version, body as never, { maxRetries: 0 });
  const id = (answer as { agent_ids: string[] }).agent_ids[0];
  if (!id) throw new Error("the template holds no agent");
  return id;
}

async function file(form: FormData): Promise<string> {
  const chosen = form.get("file");
  if (!(chosen instanceof File) || !chosen.size) throw new Error("Choose a file first.");
  return importAgent(chosen, String(form.get("name") ?? "").trim());
}

/** A form for a new agent. */
export function NewAgentPage() {
  const [source, setSource] = useState<Source>("scratch");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const queries = useQueryClient();
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setProblem(null);
    try {
      const id = await MAKE[source](new FormData(event.currentTarget));
      void queries.invalidateQueries({ queryKey: ["agents"] });
      navigate(`/agents/${id}`);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  return (
    <main className="page narrow">
      <title>New agent · Loci</title>
      <form className="card form" onSubmit={submit}>
        <h1>New agent</h1>
        <fieldset className="choices">
          <legend className="hidden-text">Make it</legend>
          {SOURCES.map(([value, label]) => (
            <label key={value} className="choice">
              <input type="radio" name="source" checked={source === value} onChange={() => setSource(value)} />
              {label}
            </label>
          ))}
        </fieldset>
        <Field label="Name" note="Left empty, Loci chooses one.">
          <input name="name" maxLength={100} />
        </Field>
        {source === "scratch" && <ScratchFields />}
        {source === "template" && <TemplateField />}
        {source === "file" && (
          <Field label="Agent file"><input name="file" type="file" accept=".af,.json,application/json" required /></Field>
        )}
        {problem && <ProblemBox title="Could not create the agent" problem={problem} />}
        <div className="form-end">
          <Link className="button" href="/agents">Cancel</Link>
          <button type="submit" className="primary" aria-disabled={isBusy}>{isBusy ? "Creating ..." : "Create agent"}</button>
        </div>
      </form>
    </main>
  );
}

function ScratchFields() {
  const models = useModels();
  return (
    <>
      <Field label="Model" {...(models.isError && { note: `Could not load the models: ${problemOf(models.error).sentence}` })}>
        <select name="model" defaultValue="">
          <option value="">The server's default</option>
          {models.data?.map((model) => <option key={model.handle} value={model.handle ?? ""}>{model.handle}</option>)}
        </select>
      </Field>
      <Field label="What it knows of you (block human)" note="It changes this itself as it learns more.">
        <textarea name="human" rows={2} />
      </Field>
      <Field label="Who it is (block persona)"><textarea name="persona" rows={2} /></Field>
      <Field label="Tags" note="With commas between them."><input name="tags" /></Field>
    </>
  );
}

function TemplateField() {
  const templates = useTemplates();
  if (templates.isError) return <ProblemBox title="Could not load the templates" problem={problemOf(templates.error)} />;
  if (templates.data?.length === 0) {
    return <p className="muted">There are no templates. One is made of an agent: templates.create of the client.</p>;
  }
  return (
    <Field label="Template">
      <select name="template" required>
        {templates.data?.map((each) => (
          <option key={each.id} value={each.name}>{`${each.name} (version ${each.latest_version})`}</option>
        ))}
      </select>
    </Field>
  );
}
