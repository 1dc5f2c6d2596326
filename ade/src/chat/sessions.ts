import { agentBackend, type Backend } from "./backend";
import { type Place, routeId } from "./place";
import { Session } from "./session";

const HIDDEN_MILLISECONDS = 30_000;
const sessions = new Map<string, Session>();

export function sessionOf(place: Place, backendOf: (place: Place) => Backend = agentBackend): Session {
  const key = routeId(place);
  let session = sessions.get(key);
  if (!session) sessions.set(key, (session = new Session(place, backendOf(place))));
  return session;
}

/** Forgets all conversations, as when another key is used. */
export function forgetSessions(): void {
  sessions.forEach((session) => session.close());
  sessions.clear();
}

let timer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  const rest = (isHidden: boolean): void => sessions.forEach((session) => session.rest(isHidden));
  if (document.hidden) timer = window.setTimeout(rest, HIDDEN_MILLISECONDS, true);
  else rest(false);
});
