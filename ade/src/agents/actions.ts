import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { api, BASE_URL } from "../api/client";
import { problemOf } from "../api/errors";
import { currentKey } from "../api/key";
import { toast } from "../shell/toasts";
import type { Agent } from "./queries";

/** How long a deletion may be taken back. */
const UNDO_MILLISECONDS = 8_000;
let doomed: ReadonlyMap<string, number> = new Map();
const listeners = new Set<() => void>();

/** Returns the agents that are about to be deleted, by their ids: lists leave them out. */
export function useDoomed(): ReadonlyMap<string, number> {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => doomed,
  );
}

function setDoomed(id: string, timer: number | null): void {
  const others = [...doomed].filter(([each]) => each !== id);
  doomed = new Map(timer === null ? others : [...others, [id, timer]]);
  listeners.forEach((listener) => listener());
}

/** Deletes an agent in some seconds, unless somebody takes it back. */
export function deleteSoon(agent: Agent, queries: QueryClient): void {
  setDoomed(agent.id, window.setTimeout(() => void deleteNow(agent, queries), UNDO_MILLISECONDS));
  toast(`Deleted ${agent.name}`, { label: "Undo", run: () => takeBack(agent.id) });
}

function takeBack(id: string): void {
  clearTimeout(doomed.get(id));
  setDoomed(id, null);
}

async function deleteNow(agent: Agent, queries: QueryClient): Promise<void> {
  try {
    await api().agents.delete(agent.id);
  } catch (error) {
    toast(`Could not delete ${agent.name}: ${problemOf(error).sentence}`);
  }
  await queries.invalidateQueries({ queryKey: ["agents"] });
  setDoomed(agent.id, null);
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
  // Not by the client's method: it tries out what `fetch` can with an address that the page's policy refuses.
  const body = new FormData();
  body.append("file", new File([file], "agent.af", { type: "application/json" }));
  if (name) body.append("name", name);
  const answer = await api().post<{ agent_ids: string[] }>("/v1/agents/import", { body, maxRetries: 0 });
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
