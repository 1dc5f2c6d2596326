import { type KeyboardEvent, useDeferredValue, useEffect, useRef, useState } from "react";
import { useAgents } from "../agents/queries";
import { navigate } from "../router";
import { useCaller } from "./access-gate";
import { PLACES } from "./places";

const MOST_AGENTS = 8;

/** Ctrl+K: goes to a screen or an agent by its name. */
export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const hear = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
      if (!dialog.current?.open) dialog.current?.showModal();
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, []);
  return (
    <dialog ref={dialog} className="palette" aria-label="Go to" onClose={() => setOpen(false)}>
      {isOpen && <Choices close={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Choices({ close }: { close: () => void }) {
  const caller = useCaller();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const query = useDeferredValue(text.trim());
  const agents = useAgents(caller, query, "");
  const words = text.trim().toLowerCase();
  const places = PLACES.filter(({ label, needs }) => caller.rights.includes(needs) && label.toLowerCase().includes(words));
  // Those of an earlier text may still be there.
  const found = (agents.data?.pages.flat() ?? []).filter(({ name }) => name.toLowerCase().includes(words)).slice(0, MOST_AGENTS);
  const entries = [
    ...places.map(({ to, label }) => ({ to, label, note: "" })),
    ...found.map(({ id, name }) => ({ to: `/agents/${id}`, label: name, note: "agent" })),
  ];
  const chosen = Math.min(at, entries.length - 1);
  const go = (to: string | undefined): void => {
    if (!to) return;
    close();
    navigate(to);
  };
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") go(entries[chosen]?.to);
    if (by === undefined || !entries.length) return;
    event.preventDefault();
    setAt((chosen + by + entries.length) % entries.length);
  };
  return (
    <>
      <input
        type="search"
        role="combobox"
        aria-label="Go to a screen or an agent"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries[chosen] ? `palette-${chosen}` : undefined}
        // Who opens it types.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        placeholder="Go to ..."
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <div role="listbox" id="palette-list" aria-label="Screens and agents">
        {entries.map(({ to, label, note }, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- keys move in the field above
          <div key={to} id={`palette-${index}`} role="option" tabIndex={-1} aria-selected={index === chosen} onClick={() => go(to)}>
            <span className="cut">{label}</span> <span className="muted small">{note}</span>
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className="muted small">Nothing has this name.</p>}
    </>
  );
}
