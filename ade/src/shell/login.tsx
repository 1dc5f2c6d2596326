import { type FormEvent, useRef, useState } from "react";
import { problemOf } from "../api/errors";

/** Asks for a key or the password. */
export function Login({ enter }: { enter: (key: string) => Promise<void> }) {
  const field = useRef<HTMLInputElement>(null);
  const [sentence, setSentence] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const key = field.current?.value.trim();
    if (!key || isBusy) return;
    setBusy(true);
    try {
      await enter(key);
    } catch (error) {
      const problem = problemOf(error);
      setSentence(problem.status === 401 ? `Unauthorized: ${wrong(key)}` : problem.sentence);
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <main className="centre">
      <form className="card login" onSubmit={submit}>
        <h1>Loci</h1>
        <label htmlFor="key">API key or password of this server</label>
        <input
          id="key"
          ref={field}
          type="password"
          autoComplete="current-password"
          // The one thing to do on this page.
          // oxlint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          aria-invalid={sentence !== ""}
          aria-describedby="key-problem key-note"
        />
        <p id="key-problem" role="alert" className="error-text">{sentence}</p>
        <button type="submit" className="primary" aria-disabled={isBusy}>Sign in</button>
        <p id="key-note" className="muted small">It stays in this tab, and is gone when you close it.</p>
      </form>
    </main>
  );
}

function wrong(key: string): string {
  return key.startsWith("loci-") ? "this key is not known, or its time is over." : "this password is not the server's.";
}
