import { useQueryClient } from "@tanstack/react-query";
import { FolderPlus } from "lucide-react";
import { api } from "../api/client";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { DraftForm } from "../ui/draft-form";
import { Field, textOf } from "../ui/field";
import { ListScreen } from "../ui/list-screen";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { FolderFiles } from "./folder-files";
import { type Folder, useFolderAgents, useFolders } from "./folders";

/** All folders: their files, their settings, and which agents have them. */
export default function FoldersPage({ folderId }: { folderId: string | null }) {
  return (
    <ListScreen
      title="Folders"
      noun="folder"
      icon={FolderPlus}
      to="/folders"
      open={folderId}
      query={useFolders()}
      refusal={useRefusal("write")}
      row={(folder) => ({ title: folder.name, note: folder.description || `made ${ago(folder.created_at)}` })}
      renderDetail={(folder) => <FolderDetail key={folder.id} folder={folder} />}
      pages={{ new: <NewFolder /> }}
      hint="Choose a folder, or make one. Agents that have a folder search its files."
      empty="There are no folders yet."
    />
  );
}

function NewFolder() {
  const action = useAction();
  const queries = useQueryClient();
  return (
    <DraftForm
      name="folder"
      action={action}
      failure="Could not create the folder"
      send={async (fields) => {
        const body = { name: textOf(fields, "name"), ...settings(fields) };
        const made = await api().folders.create(body, { maxRetries: 0 });
        await queries.invalidateQueries({ queryKey: ["folders"] });
        navigate(`/folders/${made.id}`);
      }}
    >
      <h2>New folder</h2>
      <Field label="Name"><input name="name" required maxLength={255} /></Field>
      <Settings folder={null} />
      <div className="form-end"><button type="submit" className="primary" aria-disabled={action.isBusy}>Create folder</button></div>
    </DraftForm>
  );
}

function Settings({ folder }: { folder: Folder | null }) {
  return (
    <>
      <Field label="Description"><input name="description" defaultValue={folder?.description ?? ""} /></Field>
      <Field label="Instructions" note="What agents are told about its files.">
        <textarea name="instructions" rows={2} defaultValue={folder?.instructions ?? ""} />
      </Field>
    </>
  );
}

function settings(fields: FormData): { description: string; instructions: string } {
  return { description: textOf(fields, "description"), instructions: textOf(fields, "instructions") };
}

function FolderDetail({ folder }: { folder: Folder }) {
  const refusal = useRefusal("write");
  const agents = useFolderAgents(folder.id);
  const action = useAction();
  const removal = useAction();
  const queries = useQueryClient();
  return (
    <div className="detail">
      <header className="detail-head">
        <h2 className="cut">{folder.name}</h2>
        <AskButton
          question="Delete it with its files?"
          refusal={refusal}
          act={() => removal.run(async () => {
            await api().folders.delete(folder.id);
            await queries.invalidateQueries({ queryKey: ["folders"] });
            navigate("/folders");
          })}
        >
          Delete
        </AskButton>
      </header>
      {removal.problem && <ProblemBox title="Could not delete the folder" problem={removal.problem} />}
      <p className="muted small">
        Embedded by <code>{folder.embedding_config?.handle || "nothing: found by words alone"}</code> ·{" "}
        {agents.data?.length ? `agents that have it: ${agents.data.length}` : "no agent has it"}
      </p>
      <FolderFiles folderId={folder.id} refusal={refusal} />
      <details>
        <summary>Settings</summary>
        <DraftForm
          name={`folder-${folder.id}`}
          action={action}
          failure="Could not save the folder"
          send={async (fields) => {
            await api().folders.update(folder.id, { name: textOf(fields, "name"), ...settings(fields) }, { maxRetries: 0 });
            await queries.invalidateQueries({ queryKey: ["folders"] });
            toast("Saved");
          }}
        >
          <Field label="Name"><input name="name" required maxLength={255} defaultValue={folder.name} /></Field>
          <Settings folder={folder} />
          <div className="form-end">
            <button type="submit" className="primary" disabled={refusal !== null} title={refusal ?? undefined}>Save</button>
          </div>
        </DraftForm>
      </details>
    </div>
  );
}
