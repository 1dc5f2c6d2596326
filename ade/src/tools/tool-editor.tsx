import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { CodeEditor } from "../ui/code-editor";
import { readDraft, writeDraft } from "../ui/form-draft";
import { ProblemBox } from "../ui/problem-box";
import { TextBlock } from "../ui/text-block";
import { useAction } from "../ui/use-action";
import { SchemaPreview, useSchema } from "./schema-preview";
import { ToolSettings } from "./tool-settings";
import { BEGINNINGS, bodyOf, changesOf, type Fields, fieldsOf, fromDraft, toDraft } from "./tool-fields";
import { isForeign, type Language, type Tool } from "./tools";
import { TryTool } from "./try-tool";

/** Writes, tries and stores a tool. What is typed and not saved outlives the page. */
export default function ToolEditor({ tool }: { tool: Tool | null }) {
  const name = `tool-${tool?.id ?? "new"}`;
  const [base, setBase] = useState(tool);
  const [fields, setFields] = useState<Fields>(() => ({ ...fieldsOf(tool), ...fromDraft(readDraft(name)) }));
  const [theirs, setTheirs] = useState<Tool | null>(null);
  const refusal = useRefusal("write");
  const isOthers = tool !== null && isForeign(tool);
  const found = useSchema(fields.code, fields.language, refusal === null && !isOthers);
  const action = useAction();
  const queries = useQueryClient();
  const isDirty = JSON.stringify({ ...fields, variables: "" }) !== JSON.stringify(fieldsOf(base)) || fields.variables !== "";

  const change = (part: Partial<Fields>): void => {
    const next = { ...fields, ...part };
    setFields(next);
    writeDraft(name, toDraft(next, fieldsOf(base)));
  };
  const save = async (isForced = false): Promise<void> => {
    const isDone = await action.run(async () => {
      if (tool && base && !isForced) {
        const now = (await api().tools.retrieve(tool.id)) as unknown as Tool;
        if (now.source_code !== base.source_code) {
          setTheirs(now);
          throw new Error("Somebody changed the source meanwhile. Theirs is below.");
        }
      }
      if (!tool && !isForced && found.schema?.name) await refuseKnown(found.schema.name);
      const body = tool ? changesOf(fields, fieldsOf(base), isOthers) : bodyOf(fields, isOthers);
      const saved = (await (tool
        ? api().tools.update(tool.id, body as never, { maxRetries: 0 })
        : api().tools.create(body as never, { maxRetries: 0 }))) as unknown as Tool;
      writeDraft(name, {});
      queries.setQueryData(["tool", saved.id], saved);
      await Promise.all([queries.invalidateQueries({ queryKey: ["tools"] }), queries.invalidateQueries({ queryKey: ["tool-variables"] })]);
      setBase(saved);
      setFields(fieldsOf(saved));
      setTheirs(null);
      toast(`Saved ${saved.name}`);
      if (!tool) navigate(`/tools/${saved.id}`);
    });
    if (isDone) action.clear();
  };

  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a key that means its button
    <article
      className="detail tool-editor"
      aria-label="Tool"
      onKeyDown={(event) => {
        if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (isDirty && refusal === null) void save();
      }}
    >
      <header className="detail-head">
        <h2 className="cut"><code>{found.schema?.name ?? tool?.name ?? "New tool"}</code></h2>
        <span className="muted small" role="status">{isDirty ? "Unsaved" : ""}</span>
        {isDirty && (
          <button
            type="button"
            className="quiet"
            onClick={() => {
              writeDraft(name, {});
              setFields(fieldsOf(base));
            }}
          >
            Discard
          </button>
        )}
        {tool && <Delete tool={tool} refusal={refusal} />}
        <button type="button" className="primary" disabled={refusal !== null} title={refusal ?? "Save (Ctrl+S)"} aria-disabled={!isDirty && tool !== null} onClick={() => void save()}>
          Save
        </button>
      </header>
      {isOthers && <p className="muted small">{originOf(tool)} Its source and schema are its maker's; you may change its settings.</p>}
      {action.problem && (
        <>
          <ProblemBox title="Not saved" problem={action.problem} />
          {(theirs ?? !tool) && action.problem.status === null && (
            <button type="button" onClick={() => void save(true)}>{theirs ? "Save mine over it" : "Replace it"}</button>
          )}
        </>
      )}
      {theirs && <TextBlock label="Theirs" text={theirs.source_code ?? ""} />}
      {!tool && (
        <label className="inline-field">
          Language{" "}
          <select
            value={fields.language}
            onChange={(event) => {
              const language = event.target.value as Language;
              const isUntouched = Object.values(BEGINNINGS).includes(fields.code);
              change({ language, ...(isUntouched && { code: BEGINNINGS[language] }) });
            }}
          >
            {Object.keys(BEGINNINGS).map((each) => <option key={each}>{each}</option>)}
          </select>
        </label>
      )}
      {(!isOthers || tool?.source_code) && (
        <CodeEditor
          label="Source of the tool"
          language={fields.language}
          value={fields.code}
          isReadOnly={isOthers || refusal !== null}
          onChange={(code) => change({ code })}
        />
      )}
      <SchemaPreview found={isOthers || refusal !== null ? { schema: tool?.json_schema ?? null, sentence: "" } : found} />
      {!isOthers && refusal === null && <TryTool name={name} fields={fields} schema={found.schema ?? tool?.json_schema ?? null} />}
      <ToolSettings fields={fields} change={change} tool={tool} isOthers={isOthers} refusal={refusal} />
    </article>
  );
}

function Delete({ tool, refusal }: { tool: Tool; refusal: string | null }) {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <>
      <AskButton
        question="Delete it? Agents lose it."
        refusal={refusal}
        act={() => action.run(async () => {
          await api().tools.delete(tool.id);
          await queries.invalidateQueries({ queryKey: ["tools"] });
          navigate("/tools");
        })}
      >
        Delete
      </AskButton>
      {action.problem && <ProblemBox title="Could not delete it" problem={action.problem} />}
    </>
  );
}

function originOf(tool: Tool): string {
  const server = tool.metadata_?.mcp?.server_name;
  return tool.tool_type === "external_mcp" ? `A tool of the MCP server ${server ?? ""}.` : "A tool that ships with Loci.";
}

/** A tool that is created replaces the one of its name: that must be meant. */
async function refuseKnown(name: string): Promise<void> {
  const known = (await api().tools.list({ name, limit: 1 })).items.length > 0;
  if (known) throw new Error(`There is a tool ${name}. Saving this replaces it, for every agent that has it.`);
}
