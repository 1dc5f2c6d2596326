import { useSyncExternalStore } from "react";
import { BASE_URL } from "../api/client";
import { currentKey } from "../api/key";

/** A file on its way to a folder. It goes on while nobody looks at it. */
export interface Upload {
  id: number;
  folderId: string;
  file: File;
  sent: number;
  state: "sending" | "storing" | "failed";
  /** Why it failed, and what became of it. */
  problem: string;
}

/** Sends bytes, and tells how many have gone. Resolves with the status and the body of the answer. */
export type Send = (upload: Upload, duplicates: Duplicates, tell: (sent: number) => void) => Promise<Answer>;
export type Duplicates = "suffix" | "skip";
export interface Answer {
  status: number;
  body: string;
}

let uploads: readonly Upload[] = [];
let count = 0;
const listeners = new Set<() => void>();
const done = new Set<(folderId: string) => void>();

export function useUploads(folderId: string): readonly Upload[] {
  const all = useSyncExternalStore(subscribe, () => uploads);
  return all.filter((each) => each.folderId === folderId);
}

export function allUploads(): readonly Upload[] {
  return uploads;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls a function whenever a file has been stored. */
export function onStored(listener: (folderId: string) => void): () => void {
  done.add(listener);
  return () => done.delete(listener);
}

export function upload(folderId: string, files: Iterable<File>, send: Send = sendByRequest): Promise<void>[] {
  return [...files].map((file) => {
    const each: Upload = { id: (count += 1), folderId, file, sent: 0, state: "sending", problem: "" };
    put([...uploads, each]);
    // A name that is taken gets a number: nothing is replaced.
    return carry(each, "suffix", send);
  });
}

/** Sends a file again. One that was stored after all, under its name, is not stored twice. */
export function uploadAgain(each: Upload, send: Send = sendByRequest): Promise<void> {
  const again: Upload = { ...each, sent: 0, state: "sending", problem: "" };
  change(again);
  return carry(again, "skip", send);
}

export function forget(each: Upload): void {
  put(uploads.filter((other) => other.id !== each.id));
}

async function carry(each: Upload, duplicates: Duplicates, send: Send): Promise<void> {
  let sent = 0;
  const tell = (bytes: number): void => {
    sent = bytes;
    change({ ...each, sent, state: bytes < each.file.size ? "sending" : "storing" });
  };
  try {
    const { status, body } = await send(each, duplicates, tell);
    if (status < 200 || status > 299) throw new Refusal(sentenceOf(body) ?? `Loci answered ${status}.`);
    forget(each);
    done.forEach((listener) => listener(each.folderId));
  } catch (error) {
    change({ ...each, sent, state: "failed", problem: error instanceof Refusal ? error.message : cutOff(sent, each.file.size) });
  }
}

class Refusal extends Error {}

/** Returns what to tell about an upload that nobody answered. */
export function cutOff(sent: number, size: number): string {
  if (sent < size) return `Cut off at ${Math.floor((sent / Math.max(size, 1)) * 100)} %: nothing of it was stored.`;
  return "Loci did not answer: it may have been stored. Sending it again does not store it twice.";
}

function sentenceOf(body: string): string | null {
  try {
    const detail: unknown = (JSON.parse(body) as { detail?: unknown }).detail;
    return typeof detail === "string" ? detail : JSON.stringify(detail);
  } catch {
    return null;
  }
}

function change(each: Upload): void {
  put(uploads.map((other) => (other.id === each.id ? each : other)));
}

function put(next: readonly Upload[]): void {
  uploads = next;
  listeners.forEach((listener) => listener());
}

/** Not by the client, which sends by `fetch`: that does not tell how much has gone. */
function sendByRequest(each: Upload, duplicates: Duplicates, tell: (sent: number) => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${BASE_URL}/v1/folders/${each.folderId}/upload?duplicate_handling=${duplicates}`);
    const key = currentKey();
    if (key !== null) request.setRequestHeader("authorization", `Bearer ${key}`);
    // What frames the file counts, too.
    request.upload.addEventListener("progress", (event) => tell(Math.floor((event.loaded / event.total) * each.file.size)));
    request.addEventListener("load", () => resolve({ status: request.status, body: request.responseText }));
    request.addEventListener("error", () => reject(new Error("nobody answered")));
    request.addEventListener("abort", () => reject(new Error("nobody answered")));
    const body = new FormData();
    body.append("file", each.file);
    request.send(body);
  });
}

if (typeof addEventListener === "function") {
  addEventListener("beforeunload", (event) => {
    // The browser asks: what is under way ends with the page.
    if (uploads.some((each) => each.state !== "failed")) event.preventDefault();
  });
}
