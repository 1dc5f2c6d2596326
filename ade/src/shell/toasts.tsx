import { useSyncExternalStore } from "react";

/** A line at the bottom of the page, which may offer something to do. */
export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

const MILLISECONDS = 8_000;
let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  listeners.forEach((listener) => listener());
}

/** Shows a line for some seconds. Returns its id. */
export function toast(text: string, action?: Toast["action"]): number {
  const id = (count += 1);
  change([...toasts, { id, text, ...(action && { action }) }]);
  setTimeout(() => dismiss(id), MILLISECONDS);
  return id;
}

export function dismiss(id: number): void {
  change(toasts.filter((each) => each.id !== id));
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status">
      {shown.map(({ id, text, action }) => (
        <div className="toast" key={id}>
          <span>{text}</span>
          {action && (
            <button
              type="button"
              onClick={() => {
                action.run();
                dismiss(id);
              }}
            >
              {action.label}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
