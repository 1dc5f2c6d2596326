import { useQueryClient } from "@tanstack/react-query";
import { RotateCw, Trash2, Upload as UploadIcon, X } from "lucide-react";
import { type DragEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { api } from "../api/client";
import { problemOf } from "../api/errors";
import { toast } from "../shell/toasts";
import { AskButton } from "../ui/ask-button";
import { IconButton } from "../ui/icon-button";
import { Loaded } from "../ui/loaded";
import { percent, size } from "../ui/numbers";
import { TextBlock } from "../ui/text-block";
import { ago } from "../ui/time";
import { readText, type StoredFile, takeInAgain, useFiles } from "./folders";
import { forget, onStored, type Upload, upload, uploadAgain, useUploads } from "./uploads";

interface Props {
  folderId: string;
  /** Why nothing may be changed; null where it may. */
  refusal: string | null;
  /** What else can be done with a file. */
  more?: (file: StoredFile) => ReactNode;
}

/** The files of a folder, those that come included. */
export function FolderFiles({ folderId, refusal, more }: Props) {
  const files = useFiles(folderId);
  const coming = useUploads(folderId);
  const queries = useQueryClient();
  useEffect(
    () =>
      onStored((stored) => {
        if (stored === folderId) void queries.invalidateQueries({ queryKey: ["files", folderId] });
      }),
    [folderId, queries],
  );
  return (
    <div className="folder-files">
      <DropZone folderId={folderId} refusal={refusal} />
      <ul className="files" aria-label="Files">
        {coming.map((each) => <Coming key={each.id} each={each} />)}
        <Loaded query={files} what="the files">
          {(stored) =>
            stored.length || coming.length
              ? stored.map((file) => <FileRow key={file.id} folderId={folderId} file={file} refusal={refusal} more={more?.(file)} />)
              : <li className="empty">No files yet. Text, Markdown, PDF, DOCX and source code can be read.</li>}
        </Loaded>
      </ul>
    </div>
  );
}

function DropZone({ folderId, refusal }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const take = (files: Iterable<File>): void => void upload(folderId, files);
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    if (refusal === null) take(event.dataTransfer.files);
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the button within does the same
    <div
      className={`drop-zone ${isOver ? "is-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          take(event.target.files ?? []);
          event.target.value = "";
        }}
      />
      <button type="button" disabled={refusal !== null} title={refusal ?? undefined} onClick={() => input.current?.click()}>
        <UploadIcon aria-hidden size={16} /> Upload files
      </button>
      <span className="muted small">{refusal ?? "or drop them here"}</span>
    </div>
  );
}

function Coming({ each }: { each: Upload }) {
  const isFailed = each.state === "failed";
  return (
    <li className={`file ${isFailed ? "failed" : ""}`} data-state={each.state}>
      <div className="file-line">
        <span className="cut">{each.file.name}</span>
        <span className="muted small">{size(each.file.size)}</span>
        {isFailed && <IconButton label={`Send ${each.file.name} again`} icon={RotateCw} onClick={() => void uploadAgain(each)} />}
        {isFailed && <IconButton label={`Forget ${each.file.name}`} icon={X} onClick={() => forget(each)} />}
      </div>
      {isFailed ? (
        <p className="error-text small" role="alert">{each.problem}</p>
      ) : (
        <div className="file-line">
          <progress aria-label={`Upload of ${each.file.name}`} max={Math.max(each.file.size, 1)} value={each.sent} />
          <span className="muted small">{each.state === "storing" ? "Storing" : percent(each.sent, each.file.size)}</span>
        </div>
      )}
    </li>
  );
}

const WORDS: Record<StoredFile["processing_status"], string> = {
  pending: "Waits to be read",
  parsing: "Being read",
  embedding: "Being embedded",
  completed: "",
  error: "Failed",
};

function FileRow({ folderId, file, refusal, more }: { folderId: string; file: StoredFile; refusal: string | null; more: ReactNode }) {
  const queries = useQueryClient();
  const [text, setText] = useState<string | null>(null);
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
      await queries.invalidateQueries({ queryKey: ["files", folderId] });
    } catch (error) {
      toast(`${what}: ${problemOf(error).sentence}`);
    }
  };
  const isEmbedding = file.processing_status === "embedding" && Boolean(file.total_chunks);
  return (
    <li className="file" data-state={file.processing_status}>
      <div className="file-line">
        <span className="cut" title={file.file_name}>{file.file_name}</span>
        <span className="muted small">{size(file.file_size)} · {ago(file.created_at)}</span>
        {more}
      </div>
      {WORDS[file.processing_status] && (
        <div className="file-line" role="status">
          <span className={file.processing_status === "error" ? "error-text small" : "muted small"}>
            {WORDS[file.processing_status]}{file.error_message ? `: ${file.error_message}` : ""}
          </span>
          {isEmbedding && (
            <progress aria-label={`Embedding of ${file.file_name}`} max={file.total_chunks ?? 1} value={file.chunks_embedded ?? 0} />
          )}
        </div>
      )}
      <div className="file-line">
        <button
          type="button"
          className="quiet"
          aria-expanded={text !== null}
          onClick={() =>
            text === null
              ? void attempt("Could not read it", async () => setText(await readText(folderId, file.id)))
              : setText(null)
          }
        >
          Text
        </button>
        {file.processing_status === "error" && refusal === null && (
          <button type="button" className="quiet" onClick={() => void attempt("Could not try again", () => takeInAgain(folderId, file.id))}>
            Try again
          </button>
        )}
        <span className="spacer" />
        {refusal === null && (
          <AskButton
            question={`Delete ${file.file_name}?`}
            act={() => attempt("Could not delete it", () => api().folders.files.delete(file.id, { folder_id: folderId }))}
          >
            <Trash2 aria-hidden size={14} /> <span className="hidden-text">Delete {file.file_name}</span>
          </AskButton>
        )}
      </div>
      {text !== null && <TextBlock label="What was read out of it" text={text || "(nothing yet)"} />}
    </li>
  );
}
