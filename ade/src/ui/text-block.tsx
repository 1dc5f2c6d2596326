import { useState } from "react";

/** Beyond so many characters a text is folded. */
const LONG = 4_000;

/** A text that is data, never markup. */
export function TextBlock({ label, text }: { label: string; text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > LONG && !isWhole;
  return (
    <figure className="block">
      <figcaption className="muted small">{label}</figcaption>
      <pre tabIndex={0}>{isLong ? `${text.slice(0, LONG)} ...` : text}</pre>
      {isLong && (
        <button type="button" onClick={() => setWhole(true)}>Show all {text.length.toLocaleString("en")} characters</button>
      )}
    </figure>
  );
}

/** Returns JSON with line breaks; as it is what is none, or none yet. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Returns a value as JSON with line breaks; a text as it is, with those that it has. */
export function written(value: unknown): string {
  return typeof value === "string" ? pretty(value) : (JSON.stringify(value, null, 2) ?? "");
}
