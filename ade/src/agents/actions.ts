import type { QueryClient } from "@tanstack/react-query";
import { api, BASE_URL } from "../api/client";
import { problemOf } from "../api/errors";
import { currentKey } from "../api/key";
import { toast } from "../shell/toasts";
import type { Agent } from "./queries";

/** How long a deletion may be taken back. */
const UNDO_MILLISECONDS = 8_000;
const doomed = new Map<string, number>();
let refresh: (() => void) | null = null;

/** Returns whether an agent is about to be deleted: lists leave it out. */
export function isDoomed(id: string): boolean {
  return doomed.has(id);
}

/** Deletes an agent in some seconds, unless somebody takes it back. */
export function deleteSoon(agent: Agent, queries: QueryClient): void {
  refresh = () => void queries.invalidateQueries({ queryKey: ["agents"] });
  const timer = window.setTimeout(() => void deleteNow(agent), UNDO_MILLISECONDS);
  doomed.set(agent.id, timer);
  refresh();
  toast(`Deleted ${agent.name}`, { label: "Undo", run: () => takeBack(agent.id) });
}

function takeBack(id: string): void {
  clearTimeout(doomed.get(id));
  doomed.delete(id);
  refresh?.();
}

async function deleteNow(agent: Agent): Promise<void> {
  try {
    await api().agents.delete(agent.id);
  } catch (error) {
    toast(`Could not delete ${agent.name}: ${problemOf(error).sentence}`);
  }
  doomed.delete(agent.id);
  refresh?.();
}

// Whoever leaves meant it.
addEventListener("pagehide", () => {
  const key = currentKey();
  for (const id of doomed.keys()) {
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    void fetch(`${BASE_URL}/v1/agents/${id}`, { method: "DELETE", keepalive: true, headers });
  }
});

async function fileOf(id: string): Promise<string> {
  const document: unknown = await api().agents.exportFile(id);
  return typeof document === "string" ? document : JSON.stringify(document, null, 2);
}

/** Saves an agent as a file on this machine. */
export async function exportAgent(agent: Agent): Promise<void> {
  try {
    const url = URL.createObjectURL(new Blob([await fileOf(agent.id)], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `${agent.name.replace(/[^\w.-]+/g, "-") || "agent"}.af`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) {
    toast(`Could not export ${agent.name}: ${problemOf(error).sentence}`);
  }
}

/** Makes agents of a file. Returns the id of the first. */
export async function importAgent(file: Blob, name?: string): Promise<string> {
  const upload = new File([file], "agent.af", { type: "application/json" });
  const answer = await api().agents.importFile({ file: upload, ...(name && { name }) }, { maxRetries: 0 });
  const id = answer.agent_ids[0];
  if (!id) throw new Error("the file holds no agent");
  return id;
}

/** Makes a copy of an agent with what it remembers. Returns its id; null where it could not. */
export async function cloneAgent(agent: Agent, queries: QueryClient): Promise<string | null> {
  try {
    const id = await importAgent(new Blob([await fileOf(agent.id)]), `${agent.name} (copy)`);
    await queries.invalidateQueries({ queryKey: ["agents"] });
    return id;
  } catch (error) {
    toast(`Could not clone ${agent.name}: ${problemOf(error).sentence}`);
    return null;
  }
}
