import type { LucideIcon } from "lucide-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { IconButton } from "./icon-button";

export interface MenuItem {
  label: string;
  run: () => unknown;
  /** Why it may not be used; null where it may. */
  refusal?: string | null;
  isDangerous?: boolean;
}

/** Of an entry, in pixels, where fingers point. */
const ITEM = 44;

/** A button that opens a list of things to do. */
export function Menu({ label, icon, items }: { label: string; icon: LucideIcon; items: MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const [isUp, setUp] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return;
    list.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const close = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [isOpen]);
  const leave = (): void => {
    setOpen(false);
    box.current?.querySelector("button")?.focus();
  };
  const move = (event: KeyboardEvent): void => {
    const entries = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") leave();
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    entries[(to + entries.length) % entries.length]?.focus();
  };
  return (
    <div className="menu" ref={box}>
      <IconButton
        label={label}
        icon={icon}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={(event) => {
          // Below the last row there is no room.
          setUp(event.currentTarget.getBoundingClientRect().bottom > innerHeight - ITEM * (items.length + 1));
          setOpen(!isOpen);
        }}
      />
      {isOpen && (
        <div role="menu" tabIndex={-1} id={id} aria-label={label} className={`menu-list ${isUp ? "up" : ""}`} ref={list} onKeyDown={move}>
          {items.map((item) => (
            <button
              type="button"
              role="menuitem"
              tabIndex={-1}
              key={item.label}
              className={item.isDangerous ? "dangerous" : ""}
              aria-disabled={Boolean(item.refusal)}
              title={item.refusal ?? undefined}
              onClick={() => {
                if (item.refusal) return;
                leave();
                void item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
