import { type ReactNode, useState } from "react";

interface Props {
  children: ReactNode;
  /** What is asked before it is done. */
  question: string;
  act: () => unknown;
  /** Why it may not be used; null where it may. */
  refusal?: string | null;
  /** What the button that does it says; "Delete" if nothing else is said. */
  yes?: string;
}

/** A button for what cannot be taken back: it asks first, in its place. */
export function AskButton({ children, question, act, refusal = null, yes = "Delete" }: Props) {
  const [isAsking, setAsking] = useState(false);
  if (!isAsking) {
    return (
      <button
        type="button"
        className="dangerous"
        disabled={refusal !== null}
        title={refusal ?? undefined}
        onClick={() => setAsking(true)}
      >
        {children}
      </button>
    );
  }
  return (
    <span className="ask" role="group" aria-label={question}>
      <span className="small">{question}</span>
      <button type="button" onClick={() => setAsking(false)}>Keep</button>
      <button
        type="button"
        className="dangerous"
        onClick={() => {
          setAsking(false);
          act();
        }}
      >
        {yes}
      </button>
    </span>
  );
}
