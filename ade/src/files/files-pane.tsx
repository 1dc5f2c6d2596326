import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/client";
import { useRefusal } from "../shell/access-gate";
import { Loaded } from "../ui/loaded";
import { ProblemBox } from "../ui/problem-box";
import { Toggle } from "../ui/toggle";
import { useAction } from "../ui/use-action";
import { FolderFiles } from "./folder-files";
import { type Folder, type StoredFile, useAgentFolders, useFolders, useOpenFiles } from "./folders";

/** The folders of an agent, with their files. */
export function FilesPane({ agentId }: { agentId: string }) {
  const folders = useAgentFolders(agentId);
  const mayAttach = useRefusal("write_agent", agentId);
  const mayUpload = useRefusal("write");
  const action = useAction();
  const queries = useQueryClient();
  const refresh = async (): Promise<void> => {
    await Promise.all(["agent-folders", "agent-files"].map((key) => queries.invalidateQueries({ queryKey: [key, agentId] })));
  };
  return (
    <div className="pane">
      <p className="muted small">The agent searches what is here, and has open what fits into its view.</p>
      <Loaded query={folders} what="the folders">
        {(attached) => (
          <>
            <AttachFolder
              attached={attached}
              refusal={mayAttach}
              attach={(id) => action.run(async () => {
                await api().agents.folders.attach(id, { agent_id: agentId });
                await refresh();
              })}
              create={(name) => action.run(async () => {
                const made = await api().folders.create({ name }, { maxRetries: 0 });
                await api().agents.folders.attach(made.id, { agent_id: agentId });
                await Promise.all([refresh(), queries.invalidateQueries({ queryKey: ["folders"] })]);
              })}
            />
            {action.problem && <ProblemBox title="Could not change the folders" problem={action.problem} />}
            {attached.length === 0 && <p className="empty">This agent has no folder. Choose one above, or make one.</p>}
            {attached.map((folder) => (
              <section key={folder.id} className="folder" aria-label={`Folder ${folder.name}`}>
                <header className="file-line">
                  <h3 className="cut"><Link href={`/folders/${folder.id}`}>{folder.name}</Link></h3>
                  <span className="spacer" />
                  <button
                    type="button"
                    className="quiet"
                    disabled={mayAttach !== null}
                    title={mayAttach ?? undefined}
                    onClick={() => void action.run(async () => {
                      await api().agents.folders.detach(folder.id, { agent_id: agentId });
                      await refresh();
                    })}
                  >
                    Detach
                  </button>
                </header>
                <OpenFiles agentId={agentId} folder={folder} mayUpload={mayUpload} mayOpen={mayAttach} />
              </section>
            ))}
          </>
        )}
      </Loaded>
    </div>
  );
}

interface AttachProps {
  attached: Folder[];
  refusal: string | null;
  attach: (id: string) => Promise<boolean>;
  create: (name: string) => Promise<boolean>;
}

function AttachFolder({ attached, refusal, attach, create }: AttachProps) {
  const all = useFolders(refusal === null);
  const [name, setName] = useState("");
  const known = new Set(attached.map((each) => each.id));
  const others = (all.data ?? []).filter((each) => !known.has(each.id));
  if (refusal !== null) return <p className="muted small">{refusal}</p>;
  return (
    <div className="attach">
      {others.length > 0 && (
        <select aria-label="Attach a folder" value="" onChange={(event) => void attach(event.target.value)}>
          <option value="">Attach a folder ...</option>
          {others.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
        </select>
      )}
      <form
        className="file-line"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) void create(name.trim()).then((isDone) => isDone && setName(""));
        }}
      >
        <input aria-label="Name of a new folder" placeholder="New folder" value={name} onChange={(event) => setName(event.target.value)} />
        <button type="submit" aria-disabled={!name.trim()}>Create</button>
      </form>
    </div>
  );
}

/** The files of a folder; each may be open to the agent or closed. */
function OpenFiles({ agentId, folder, mayUpload, mayOpen }: { agentId: string; folder: Folder; mayUpload: string | null; mayOpen: string | null }) {
  const files = useOpenFiles(agentId);
  const queries = useQueryClient();
  const action = useAction();
  const open = new Set(files.data?.filter((each) => each.is_open).map((each) => each.file_id));
  const change = (file: StoredFile, isOpen: boolean): Promise<boolean> =>
    action.run(async () => {
      const params = { agent_id: agentId };
      await (isOpen ? api().agents.files.open(file.id, params) : api().agents.files.close(file.id, params));
      await queries.invalidateQueries({ queryKey: ["agent-files", agentId] });
    });
  const control = (file: StoredFile): ReactNode => (
    <Toggle
      label="open"
      title={mayOpen ?? "Whether the agent has it in view"}
      isOn={open.has(file.id)}
      isDisabled={mayOpen !== null || file.processing_status === "error"}
      change={(isOpen) => change(file, isOpen)}
    />
  );
  return (
    <>
      <FolderFiles
        folderId={folder.id}
        refusal={mayUpload}
        more={control}
      />
      {action.problem && <ProblemBox title="Could not change what is open" problem={action.problem} />}
    </>
  );
}
