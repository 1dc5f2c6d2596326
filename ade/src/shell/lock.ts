import { useSyncExternalStore } from "react";

/** Counts how often the server said that it does not know the key: the page then asks for one. */
let locks = 0;
const listeners = new Set<() => void>();

export function lock(): void {
  locks += 1;
  listeners.forEach((listener) => listener());
}

export function useLocks(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => locks,
  );
}
