/** What somebody has typed and not sent, per conversation: in localStorage until the turn is accepted. */
const PREFIX = "loci.draft.";
const texts = new Map<string, string>();
const listeners = new Set<() => void>();

export function draftOf(place: string): string {
  const known = texts.get(place);
  if (known !== undefined) return known;
  const stored = readStored(place);
  texts.set(place, stored);
  return stored;
}

export function setDraft(place: string, text: string): void {
  texts.set(place, text);
  store(place, text);
  tell();
}

/** Empties the editor; the text stays stored until `accepted`. */
export function takeDraft(place: string): string {
  const text = draftOf(place);
  texts.set(place, "");
  tell();
  return text;
}

/** Forgets what was taken. */
export function accepted(place: string): void {
  store(place, texts.get(place) ?? "");
}

/** Puts a text back, before what was typed meanwhile. */
export function giveBack(place: string, text: string): void {
  const typed = draftOf(place);
  setDraft(place, typed ? `${text}\n${typed}` : text);
}

export function subscribeDrafts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(): void {
  listeners.forEach((listener) => listener());
}

function readStored(place: string): string {
  try {
    return localStorage.getItem(PREFIX + place) ?? "";
  } catch {
    return "";
  }
}

function store(place: string, text: string): void {
  try {
    if (text) localStorage.setItem(PREFIX + place, text);
    else localStorage.removeItem(PREFIX + place);
  } catch {
    // Full or switched off: the text lives as long as the page.
  }
}
