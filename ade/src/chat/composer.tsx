import { ArrowUp, ImagePlus, X } from "lucide-react";
import { type ClipboardEvent, type KeyboardEvent, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useRefusal } from "../shell/access-gate";
import { IconButton } from "../ui/icon-button";
import { draftOf, setDraft, subscribeDrafts } from "./drafts";
import { type Attachment, attach, contentWith, TYPES } from "./pictures";
import type { Session } from "./session";

/** Where a message is written. Enter sends, Shift+Enter begins a line, Ctrl+. stops the answer. */
export function Composer({ session, isBusy, takesFocus }: { session: Session; isBusy: boolean; takesFocus: boolean }) {
  const text = useSyncExternalStore(subscribeDrafts, () => draftOf(session.key));
  const [pictures, setPictures] = useState<Attachment[]>([]);
  const [problem, setProblem] = useState("");
  const editor = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const refusal = useRefusal("write_messages", session.place.agentId);
  const isEmpty = !text.trim() && !pictures.length;

  useEffect(() => {
    if (takesFocus) editor.current?.focus();
  }, [session, takesFocus]);
  useEffect(() => {
    const stop = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== "." || !(event.ctrlKey || event.metaKey)) return;
      // Who writes in the chat beside means that one.
      const other = document.activeElement?.closest(".chat");
      if (other && !other.contains(editor.current)) return;
      const turn = session.getSnapshot().turns.find((each) => each.runId);
      if (turn) void session.stop(turn);
    };
    addEventListener("keydown", stop);
    return () => removeEventListener("keydown", stop);
  }, [session]);

  const send = (): void => {
    // Asked of the session, not of what is drawn: two clicks may come before the next frame.
    const isSending = session.getSnapshot().turns.some((turn) => turn.phase === "sending");
    const isTaken = !draftOf(session.key).trim() && !pictures.length;
    if (isEmpty || isTaken || isSending || refusal) return;
    session.send(contentWith(text, pictures), text);
    setPictures([]);
  };
  const type = (event: KeyboardEvent): void => {
    // The Enter that ends an input method's composition is no Enter.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    send();
  };
  const add = async (chosen: Iterable<File>): Promise<void> => {
    const result = await attach([...chosen], pictures);
    setPictures(result.pictures);
    setProblem(result.problem);
  };
  const paste = (event: ClipboardEvent): void => {
    const pasted = [...event.clipboardData.files];
    if (!pasted.length) return;
    event.preventDefault();
    void add(pasted);
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {pictures.length > 0 && (
        <ul className="pictures">
          {pictures.map((picture) => (
            <li key={picture.url}>
              <img src={picture.url} alt={picture.name} />
              <IconButton
                label={`Remove ${picture.name}`}
                icon={X}
                onClick={() => setPictures(pictures.filter((each) => each !== picture))}
              />
            </li>
          ))}
        </ul>
      )}
      {problem && <p role="alert" className="error-text small">{problem}</p>}
      <div className="composer-row">
        <input
          ref={files}
          type="file"
          accept={TYPES.join()}
          multiple
          hidden
          onChange={(event) => {
            void add(event.target.files ?? []);
            event.target.value = "";
          }}
        />
        <IconButton label="Add pictures" icon={ImagePlus} disabled={refusal !== null} onClick={() => files.current?.click()} />
        <textarea
          ref={editor}
          rows={1}
          aria-label="Message"
          placeholder={refusal ?? "Message"}
          readOnly={refusal !== null}
          value={text}
          onChange={(event) => setDraft(session.key, event.target.value)}
          onKeyDown={type}
          onPaste={paste}
        />
        <IconButton
          type="submit"
          className="primary send"
          label={refusal ?? "Send"}
          icon={ArrowUp}
          aria-disabled={isEmpty || isBusy || refusal !== null}
        />
      </div>
    </form>
  );
}
