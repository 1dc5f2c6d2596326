/** The key or password of this tab: in memory and in sessionStorage, which other tabs and other pages do not read. */
const NAME = "loci.key";
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(NAME);
const ASK_MILLISECONDS = 150;

let key: string | null = read();

function read(): string | null {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null; // storage is switched off: the key lives as long as the page
  }
}

export function currentKey(): string | null {
  return key;
}

/** Keeps a key, or forgets it (null). */
export function keepKey(value: string | null): void {
  key = value;
  try {
    if (value === null) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, value);
  } catch {
    // as above
  }
}

/** Returns the key of another open tab; null where none has one. */
export async function keyOfAnotherTab(): Promise<string | null> {
  if (!channel) return null;
  return new Promise((resolve) => {
    const done = (value: string | null): void => {
      channel.removeEventListener("message", hear);
      resolve(value);
    };
    const hear = (event: MessageEvent<{ key?: string }>): void => {
      if (event.data.key) done(event.data.key);
    };
    channel.addEventListener("message", hear);
    channel.postMessage({ ask: true });
    setTimeout(() => done(null), ASK_MILLISECONDS);
  });
}

channel?.addEventListener("message", (event: MessageEvent<{ ask?: boolean }>) => {
  if (event.data.ask && key !== null) channel.postMessage({ key });
});
