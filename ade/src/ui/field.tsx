import type { ReactNode } from "react";

interface Props {
  label: string;
  note?: string;
  children: ReactNode;
}

/** A control with its name above and, if there is more to say, a line below. */
export function Field({ label, note, children }: Props) {
  return (
    <label className="field">
      <span>{label}</span>
      {children}
      {note && <span className="muted small">{note}</span>}
    </label>
  );
}

/** Returns the parts of a text with commas between them. */
export function partsOf(text: FormDataEntryValue | null): string[] {
  return String(text ?? "").split(",").map((part) => part.trim()).filter(Boolean);
}

/** Returns what stands in a field, without the space around it. */
export function textOf(fields: FormData, name: string): string {
  return String(fields.get(name) ?? "").trim();
}
