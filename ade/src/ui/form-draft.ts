/** What is typed into a form and not sent, by the form's name: in localStorage, without passwords and files. */
const PREFIX = "loci.form.";

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;
export type Draft = Record<string, string>;

/** Returns the fields of a form that may be kept: `data-secret` marks those that may not. */
function fieldsOf(form: HTMLFormElement): Field[] {
  const open = [...form.elements].filter((each) => !(each instanceof HTMLElement && "secret" in each.dataset));
  return open.filter(
    (each): each is Field =>
      (each instanceof HTMLInputElement && !["password", "file", "submit", "radio"].includes(each.type)) ||
      each instanceof HTMLTextAreaElement ||
      each instanceof HTMLSelectElement,
  );
}

/** Stores what a form holds that differs from what it began with. Fields that are not there now keep their draft. */
export function keepForm(name: string, form: HTMLFormElement): void {
  const fields = fieldsOf(form);
  const names = new Set(fields.map((field) => field.name));
  const draft: Draft = Object.fromEntries(Object.entries(readDraft(name)).filter(([key]) => !names.has(key)));
  for (const field of fields) {
    const value = changed(field);
    if (field.name && value !== null) draft[field.name] = value;
  }
  writeDraft(name, draft);
}

/** Returns what a field holds; null where that is what it began with. */
function changed(field: Field): string | null {
  if (field instanceof HTMLSelectElement) return field.selectedOptions[0]?.defaultSelected ? null : field.value;
  if (field instanceof HTMLInputElement && field.type === "checkbox") {
    return field.checked === field.defaultChecked ? null : field.checked ? "on" : "";
  }
  return field.value === field.defaultValue ? null : field.value;
}

/** Puts what was stored into a form again. */
export function restoreForm(name: string, form: HTMLFormElement): void {
  const draft = readDraft(name);
  for (const field of fieldsOf(form)) {
    const value = draft[field.name];
    if (value === undefined) continue;
    if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "on";
    else if (field.value !== value) {
      field.value = value;
      // What the form shows may hang on it.
      if (field instanceof HTMLSelectElement) field.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }
}

export function readDraft(name: string): Draft {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "{}") as Draft;
  } catch {
    return {};
  }
}

export function writeDraft(name: string, draft: Draft): void {
  try {
    if (Object.keys(draft).length) localStorage.setItem(PREFIX + name, JSON.stringify(draft));
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // Full or switched off: the text lives as long as the form.
  }
}
