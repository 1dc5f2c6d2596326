import { useEffect } from "react";

/** Marks a part of the screen that F6 leads to. */
export const PANE = { "data-pane": "", tabIndex: -1 } as const;

/** F6 leads from one part of the screen to the next, Shift+F6 to the one before. */
export function usePanes(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "F6") return;
      event.preventDefault();
      const panes = [...document.querySelectorAll<HTMLElement>("[data-pane]")].filter((pane) => pane.offsetParent !== null);
      const at = panes.findIndex((pane) => pane.contains(document.activeElement));
      const by = event.shiftKey ? -1 : 1;
      const next = at < 0 ? 0 : (at + by + panes.length) % panes.length;
      panes[next]?.focus();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
