import { useSyncExternalStore } from "react";

/** Whether what providers are asked and answer is kept with the turns that begin in this browser. */
const NAME = "loci.keep-requests";
const listeners = new Set<() => void>();
let isKept = read();

function read(): boolean {
  try {
    return localStorage.getItem(NAME) === "yes";
  } catch {
    return false;
  }
}

export function keepsRequests(): boolean {
  return isKept;
}

export function useKeepsRequests(): [boolean, (isWanted: boolean) => void] {
  const value = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    keepsRequests,
  );
  return [value, choose];
}

function choose(isWanted: boolean): void {
  isKept = isWanted;
  try {
    localStorage.setItem(NAME, isWanted ? "yes" : "no");
  } catch {
    // It lasts as long as the page.
  }
  listeners.forEach((listener) => listener());
}
