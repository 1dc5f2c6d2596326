import { useQueryClient } from "@tanstack/react-query";
import { type Template, useAgents, useTemplates } from "../agents/queries";
import { api } from "../api/client";
import { navigate } from "../router";
import { useCaller, useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field, partsOf, textOf } from "../ui/field";
import { ListScreen } from "../ui/list-screen";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { variablesOf } from "../tools/tools";
import { useAction } from "../ui/use-action";

/** Templates: agent files with versions, out of which agents are made. */
export default function TemplatesPage({ name }: { name: string | null }) {
  return (
    <ListScreen
      title="Templates"
      noun="template"
      to="/templates"
      open={name}
      keyOf={(template) => template.name}
      query={useTemplates()}
      refusal={useRefusal("write")}
      row={({ name: title, latest_version: version, description }) => ({
        title,
        note: `version ${version}${description ? ` · ${description}` : ""}`,
      })}
      renderDetail={(template) => <Detail key={template.id} template={template} />}
      pages={{ new: <NewTemplate /> }}
      hint="Choose a template, or make one of an agent."
      empty="There are no templates yet."
    />
  );
}

function NewTemplate() {
  const action = useAction();
  const queries = useQueryClient();
  const agents = useAgents(useCaller(), "", "");
  return (
    <DraftForm
      name="template"
      action={action}
      failure="Could not make the template"
      send={async (fields) => {
        const body = { type: "agent", agent_id: textOf(fields, "agent"), ...(textOf(fields, "name") && { name: textOf(fields, "name") }) };
        const made = (await api().templates.create(body as never, { maxRetries: 0 })) as unknown as Template;
        await queries.invalidateQueries({ queryKey: ["templates"] });
        navigate(`/templates/${made.name}`);
      }}
    >
      <h2>New template</h2>
      <Field label="Of the agent" note="With its memory, tools and settings; without its messages.">
        <select name="agent" required>
          {agents.data?.pages.flat().map((agent) => <option key={agent.id} value={agent.id}>{agent.name}</option>)}
        </select>
      </Field>
      <Field label="Name" note="Letters, digits, - and _. Left empty, Loci chooses one."><input name="name" pattern="[A-Za-z0-9_\-]+" /></Field>
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Make template</button></div>
    </DraftForm>
  );
}

function Detail({ template }: { template: Template }) {
  const refusal = useRefusal("write");
  const action = useAction();
  const queries = useQueryClient();
  const renew = (): Promise<void> => queries.invalidateQueries({ queryKey: ["templates"] });
  return (
    <article className="detail" aria-label="Template">
      <header className="detail-head">
        <h2 className="cut">{template.name}</h2>
        <AskButton
          question="Delete all its versions? Agents of it stay."
          refusal={refusal}
          act={() => action.run(async () => {
            await api().templates.delete(template.name);
            await renew();
            navigate("/templates");
          })}
        >
          Delete
        </AskButton>
      </header>
      <p className="muted small">Version {template.latest_version}{template.updated_at ? ` · changed ${ago(template.updated_at)}` : ""}</p>
      {action.problem && <ProblemBox title="It did not work" problem={action.problem} />}
      <MakeAgent template={template} refusal={refusal} />
      <h3>Versions</h3>
      <p className="muted small">You work on one version; saved ones never change.</p>
      <div className="block-end">
        <button
          type="button"
          disabled={refusal !== null}
          title={refusal ?? undefined}
          onClick={() => void action.run(async () => {
            await api().templates.save(template.name, {}, { maxRetries: 0 });
            await renew();
            toast("Saved as the next version");
          })}
        >
          Save the working version
        </button>
        <RollBack template={template} refusal={refusal} done={renew} />
      </div>
    </article>
  );
}

function RollBack({ template, refusal, done }: { template: Template; refusal: string | null; done: () => Promise<void> }) {
  const action = useAction();
  const versions = Array.from({ length: Number(template.latest_version) || 0 }, (_, at) => String(at + 1)).reverse();
  return (
    <>
      <select
        aria-label="Go back to a saved version"
        value=""
        disabled={refusal !== null}
        onChange={(event) => {
          const version = event.target.value;
          void action.run(async () => {
            await api().templates.rollback(template.name, { version }, { maxRetries: 0 });
            await done();
            toast(`Version ${version} is the working one again`);
          });
        }}
      >
        <option value="">Go back to ...</option>
        {versions.map((each) => <option key={each} value={each}>version {each}</option>)}
      </select>
      {action.problem && <ProblemBox title="Could not go back" problem={action.problem} />}
    </>
  );
}

function MakeAgent({ template, refusal }: { template: Template; refusal: string | null }) {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <DraftForm
      name={`agent-of-${template.name}`}
      className="form plain-form"
      label="New agent of it"
      action={action}
      failure="Could not make the agent"
      send={async (fields) => {
        const body = {
          ...(textOf(fields, "name") && { agent_name: textOf(fields, "name") }),
          ...(partsOf(fields.get("tags")).length && { tags: partsOf(fields.get("tags")) }),
          memory_variables: variablesOf(String(fields.get("variables"))),
        };
        const made = await api().templates.agents.create(`${template.name}:${textOf(fields, "version")}`, body as never, { maxRetries: 0 });
        const id = (made as { agent_ids: string[] }).agent_ids[0];
        await queries.invalidateQueries({ queryKey: ["agents"] });
        if (id) navigate(`/agents/${id}`);
      }}
    >
      <h3>New agent of it</h3>
      <Field label="Name"><input name="name" maxLength={100} /></Field>
      <Field label="Version">
        <select name="version" defaultValue="latest">
          <option value="latest">The newest saved</option>
          <option value="dev">The working one</option>
        </select>
      </Field>
      <Field label="Values for {{names}} in its memory" note="One a line, such as company=Loci."><textarea name="variables" className="code" rows={2} /></Field>
      <Field label="Tags" note="With commas between them."><input name="tags" /></Field>
      <div className="form-end">
        <button type="submit" className="primary" disabled={refusal !== null} title={refusal ?? undefined} aria-disabled={action.isBusy}>Make agent</button>
      </div>
    </DraftForm>
  );
}
