import { useRefusal } from "../shell/access-gate";
import { Field } from "../ui/field";
import type { Fields } from "./tool-fields";
import { type Tool, useVariables } from "./tools";

interface Props {
  fields: Fields;
  change: (part: Partial<Fields>) => void;
  tool: Tool | null;
  isOthers: boolean;
  refusal: string | null;
}

/** Packages, secrets, network and behaviour of a tool. */
export function ToolSettings({ fields, change, tool, isOthers, refusal }: Props) {
  const isPython = fields.language === "python";
  return (
    <fieldset className="tool-settings" disabled={refusal !== null} title={refusal ?? undefined}>
      <legend>Settings</legend>
      {!isOthers && (
        <>
          {isPython ? (
            <Field label="Packages of the Python index" note="One a line, such as humanize==4.0.0.">
              <textarea className="code" rows={2} value={fields.pip} onChange={(event) => change({ pip: event.target.value })} />
            </Field>
          ) : (
            <Field label="Packages of npm" note="One a line, such as zod@4.0.0.">
              <textarea className="code" rows={2} value={fields.npm} onChange={(event) => change({ npm: event.target.value })} />
            </Field>
          )}
          <Secrets fields={fields} change={change} tool={tool} />
          <Field label="Network, as JSON" note='Left empty, it reaches nothing. {"allow": ["api.example.com"]} opens a host.'>
            <textarea className="code" rows={2} value={fields.network} onChange={(event) => change({ network: event.target.value })} />
          </Field>
        </>
      )}
      <Field label="Tags" note="With commas between them.">
        <input value={fields.tags} onChange={(event) => change({ tags: event.target.value })} />
      </Field>
      <Field label="Most characters of a result">
        <input type="number" min={1} max={1_000_000} value={fields.limit} onChange={(event) => change({ limit: event.target.value })} />
      </Field>
      <Check label="Agents ask before each call" isOn={fields.asks} choose={(asks) => change({ asks })} />
      {!isOthers && (
        <>
          <Check label="Calls of one reply may run at the same time" isOn={fields.isParallel} choose={(isParallel) => change({ isParallel })} />
          <Check
            label="A call whose outcome is unknown may run again (idempotent)"
            isOn={fields.isIdempotent}
            choose={(isIdempotent) => change({ isIdempotent })}
          />
        </>
      )}
    </fieldset>
  );
}

function Check({ label, isOn, choose }: { label: string; isOn: boolean; choose: (isOn: boolean) => void }) {
  return (
    <label className="choice">
      <input type="checkbox" checked={isOn} onChange={(event) => choose(event.target.checked)} />
      {label}
    </label>
  );
}

/** Names of variables can be seen, values never again. */
function Secrets({ fields, change, tool }: Pick<Props, "fields" | "change" | "tool">) {
  const mayRead = useRefusal("write") === null;
  const known = useVariables(tool?.id ?? null, mayRead);
  const names = known.data?.map((each) => each.key) ?? [];
  const note = names.length
    ? `Stored: ${names.join(", ")}. What you write here replaces all of them.`
    : "One a line: NAME=value. Stored encrypted, and never shown again.";
  return (
    <Field label="Secrets and variables" note={note}>
      <textarea className="code" rows={2} autoComplete="off" value={fields.variables} onChange={(event) => change({ variables: event.target.value })} />
    </Field>
  );
}
