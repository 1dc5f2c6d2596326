/** A value of a block with the version that it is. */
export interface Version {
  value: string;
  version: number;
}

/** An edit of a block: what it began at, what is typed, and what somebody else stored meanwhile. */
export interface Edit {
  base: Version;
  text: string;
  theirs: Version | null;
  status: "clean" | "unsaved" | "saving" | "saved" | "conflict";
}

export type Action =
  | { type: "typed"; text: string }
  | { type: "seen"; now: Version }
  | { type: "saving" }
  | { type: "saved"; now: Version }
  | { type: "refused" }
  | { type: "conflict"; theirs: Version }
  | { type: "take theirs" }
  | { type: "keep mine" };

export function begin(base: Version): Edit {
  return { base, text: base.value, theirs: null, status: "clean" };
}

/** Returns the edit after something happened. What is typed is lost by "take theirs" alone. */
export function next(edit: Edit, action: Action): Edit {
  switch (action.type) {
    case "typed":
      return { ...edit, text: action.text, status: isDirty(edit, action.text) };
    case "seen":
      if (action.now.version <= edit.base.version || edit.status === "saving") return edit;
      if (edit.text === edit.base.value || edit.text === action.now.value) return begin(action.now);
      return { ...edit, theirs: action.now, status: "conflict" };
    case "saving":
      return { ...edit, status: "saving" };
    case "saved":
      return { ...begin(action.now), text: edit.text, status: edit.text === action.now.value ? "saved" : "unsaved" };
    case "refused":
      return { ...edit, status: isDirty(edit, edit.text) };
    case "conflict":
      return { ...edit, theirs: action.theirs, status: "conflict" };
    case "take theirs":
      return edit.theirs ? begin(edit.theirs) : edit;
    case "keep mine":
      return edit.theirs ? { base: edit.theirs, text: edit.text, theirs: null, status: "unsaved" } : edit;
  }
}

function isDirty(edit: Edit, text: string): Edit["status"] {
  if (edit.theirs) return "conflict";
  return text === edit.base.value ? "clean" : "unsaved";
}
