import { type ReactNode, useEffect, useRef } from "react";
import { keepForm, restoreForm, writeDraft } from "./form-draft";
import { ProblemBox } from "./problem-box";
import type { Action } from "./use-action";

interface Props {
  /** By which its draft is found again. */
  name: string;
  /** What is done with what it holds; the draft is forgotten when that succeeded. */
  send: (fields: FormData, form: HTMLFormElement) => Promise<unknown>;
  action: Action;
  /** What a failure is called, as in "Could not create the folder". */
  failure: string;
  className?: string;
  label?: string;
  children: ReactNode;
}

/** A form whose text outlives the page until it is taken. Ctrl+S sends it, as its button does. */
export function DraftForm({ name, send, action, failure, className = "form", label, children }: Props) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const restore = (): void => {
      if (form.current) restoreForm(name, form.current);
    };
    restore();
    // Fields that a choice has brought in the meantime.
    const frame = requestAnimationFrame(restore);
    return () => cancelAnimationFrame(frame);
  }, [name]);
  const submit = async (): Promise<void> => {
    const held = form.current;
    if (!held) return;
    const isDone = await action.run(() => send(new FormData(held), held));
    if (isDone) writeDraft(name, {});
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a key that means its button
    <form
      className={className}
      ref={form}
      aria-label={label}
      onInput={() => form.current && keepForm(name, form.current)}
      onKeyDown={(event) => {
        if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        form.current?.requestSubmit();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {children}
      {action.problem && <ProblemBox title={failure} problem={action.problem} />}
    </form>
  );
}
