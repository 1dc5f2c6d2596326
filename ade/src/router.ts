import { useSyncExternalStore } from "react";
import type { BaseLocationHook, BaseSearchHook } from "wouter";

/** Routes stand after the `#`: the gateway serves one page, and ids stay out of the logs of proxies. */
function split(): [path: string, search: string] {
  const hash = location.hash.replace(/^#/, "") || "/";
  const at = hash.indexOf("?");
  return at < 0 ? [hash, ""] : [hash.slice(0, at), hash.slice(at + 1)];
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

/** Goes to a path, such as `/agents?q=Ada`. */
export function navigate(to: string, options?: { replace?: boolean }): void {
  const url = `${location.pathname}${location.search}#${to}`;
  if (options?.replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export const useHashLocation: BaseLocationHook = () => [useSyncExternalStore(subscribe, () => split()[0]), navigate];
useHashLocation.hrefs = href;

export const useHashSearch: BaseSearchHook = () => useSyncExternalStore(subscribe, () => split()[1]);

/** Returns an `href` for a link that works with the middle button, too. */
export function href(to: string): string {
  return `#${to}`;
}
