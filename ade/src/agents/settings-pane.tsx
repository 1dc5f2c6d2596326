import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { DraftForm } from "../ui/draft-form";
import { Field, partsOf, textOf } from "../ui/field";
import { Loaded } from "../ui/loaded";
import { useAction } from "../ui/use-action";
import { changesOf, type Settings, settingsOf } from "./settings";
import { useModels } from "./queries";

/** What an agent is: its name, its model, its instructions. */
export function SettingsPane({ agentId }: { agentId: string }) {
  const agent = useQuery({ queryKey: ["agent-settings", agentId], queryFn: () => read(agentId) });
  return (
    <div className="pane">
      <Loaded query={agent} what="the settings">{(settings) => <Form key={JSON.stringify(settings)} agentId={agentId} settings={settings} />}</Loaded>
    </div>
  );
}

async function read(agentId: string): Promise<Settings> {
  return settingsOf((await api().agents.retrieve(agentId, { include: ["agent.tags"] } as never)) as unknown as Settings);
}

function Form({ agentId, settings }: { agentId: string; settings: Settings }) {
  const refusal = useRefusal("write_agent", agentId);
  const models = useModels();
  const action = useAction();
  const queries = useQueryClient();
  const [theirs, setTheirs] = useState<string[]>([]);
  const handles = [...new Set([settings.model, ...(models.data ?? []).map((each) => each.handle ?? "")])].filter(Boolean);
  return (
    <DraftForm
      name={`settings-${agentId}`}
      className="form plain-form"
      action={action}
      failure="Could not save the settings"
      send={async (fields) => {
        const wanted: Settings = {
          name: textOf(fields, "name"),
          description: textOf(fields, "description"),
          model: textOf(fields, "model"),
          system: String(fields.get("system") ?? ""),
          tags: partsOf(fields.get("tags")),
          timezone: textOf(fields, "timezone"),
        };
        // Only what was changed here is sent: what others changed meanwhile stays.
        const { changes, clashes } = changesOf(settings, wanted, await read(agentId));
        if (clashes.length && !theirs.length) {
          setTheirs(clashes);
          throw new Error(`Somebody changed ${clashes.join(" and ")} meanwhile. Save again to replace it with yours.`);
        }
        if (Object.keys(changes).length) await api().agents.update(agentId, changes as never, { maxRetries: 0 });
        await Promise.all([["agent-settings", agentId], ["agent", agentId], ["agents"]].map((queryKey) => queries.invalidateQueries({ queryKey })));
        toast("Saved");
      }}
    >
      <fieldset className="tool-settings" disabled={refusal !== null} title={refusal ?? undefined}>
        <legend className="hidden-text">Settings</legend>
        <Field label="Name"><input name="name" required maxLength={100} defaultValue={settings.name} /></Field>
        <Field label="Model">
          <select name="model" defaultValue={settings.model}>{handles.map((each) => <option key={each}>{each}</option>)}</select>
        </Field>
        <Field label="Description"><input name="description" defaultValue={settings.description} /></Field>
        <Field label="Instructions" note="What the model reads first. They hold from the next turn on.">
          <textarea name="system" rows={8} defaultValue={settings.system} />
        </Field>
        <Field label="Tags" note="With commas between them."><input name="tags" defaultValue={settings.tags.join(", ")} /></Field>
        <Field label="Time zone"><input name="timezone" defaultValue={settings.timezone} placeholder="UTC" /></Field>
      </fieldset>
      <div className="form-end">
        <span className="muted small">{refusal}</span>
        <button type="submit" className="primary" disabled={refusal !== null} title={refusal ?? "Save (Ctrl+S)"} aria-disabled={action.isBusy}>Save</button>
      </div>
    </DraftForm>
  );
}
