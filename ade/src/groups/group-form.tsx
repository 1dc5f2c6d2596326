import { useState } from "react";
import { AgentPicker, type Chosen } from "../ui/agent-picker";
import { DraftForm } from "../ui/draft-form";
import { Field } from "../ui/field";
import type { Action } from "../ui/use-action";
import { bodyOf, type Group, KINDS, SETTINGS } from "./groups";

interface Props {
  /** What it changes; null: a new one. */
  group: Group | null;
  members?: Chosen[];
  manager?: Chosen | null;
  action: Action;
  send: (body: object) => Promise<unknown>;
}

/** Who belongs to a group, and who says whose turn it is. */
export function GroupForm({ group, members: before = [], manager: leader = null, action, send }: Props) {
  const [kind, setKind] = useState(group?.manager_type ?? "round_robin");
  const [members, setMembers] = useState(before);
  const [manager, setManager] = useState(leader ? [leader] : []);
  const chosen = KINDS[kind];
  return (
    <DraftForm
      name={group ? `group-${group.id}` : "group"}
      className={group ? "form plain-form" : "form"}
      action={action}
      failure={group ? "Could not change the group" : "Could not make the group"}
      send={(fields) => send(bodyOf(fields))}
    >
      {!group && <h2>New group</h2>}
      <Field label="What it is for"><input name="description" required maxLength={10_000} defaultValue={group?.description ?? ""} /></Field>
      <Field label="Kind" note={chosen?.sentence ?? ""}>
        <select name="kind" value={kind} onChange={(event) => setKind(event.target.value)}>
          {Object.entries(KINDS).map(([name, { label }]) => <option key={name} value={name}>{label}</option>)}
          {!chosen && <option value={kind}>{kind}</option>}
        </select>
      </Field>
      {chosen?.hasManager && <AgentPicker label="The agent that leads" name="manager" chosen={manager} choose={setManager} isSingle />}
      <AgentPicker label="Agents" name="members" chosen={members} choose={setMembers} isOrdered={kind === "round_robin"} />
      {chosen?.settings.map((name) => (
        <Field key={name} label={SETTINGS[name].label} note={SETTINGS[name].note}>
          <input name={name} type={SETTINGS[name].isText ? "text" : "number"} min={1} defaultValue={group?.[name] ?? ""} />
        </Field>
      ))}
      <div className="form-end">
        <button type="submit" className="primary" aria-disabled={action.isBusy}>{group ? "Save" : "Make group"}</button>
      </div>
    </DraftForm>
  );
}
