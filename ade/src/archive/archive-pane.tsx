import { useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { type FormEvent, useDeferredValue, useState } from "react";
import { problemOf } from "../api/errors";
import { useRefusal } from "../shell/access-gate";
import { toast } from "../shell/toasts";
import { IconButton } from "../ui/icon-button";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { insert, type Passage, remove, usePassages } from "./passages";

/** The long-term memory of an agent: what it finds by searching. */
export function ArchivePane({ agentId }: { agentId: string }) {
  const [query, setQuery] = useState("");
  const found = usePassages(agentId, useDeferredValue(query.trim()));
  const refusal = useRefusal("write_agent", agentId);
  const queries = useQueryClient();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["passages", agentId] });
  const drop = async (passage: Passage): Promise<void> => {
    try {
      await remove(agentId, passage.id);
      toast("Deleted a passage", { label: "Undo", run: () => void insert(agentId, passage.text, passage.tags).then(refresh) });
      await refresh();
    } catch (error) {
      toast(`Could not delete it: ${problemOf(error).sentence}`);
    }
  };
  const passages = found.data?.passages ?? [];
  return (
    <div className="archive">
      <input
        type="search"
        aria-label="Search the archive"
        placeholder="Search by meaning and words"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      {refusal === null && <NewPassage agentId={agentId} done={refresh} />}
      {found.data?.byWordsAlone && <p className="muted small">Searched by words alone: the embedding model does not answer.</p>}
      {found.isError && <ProblemBox title="Could not search" problem={problemOf(found.error)} retry={() => void found.refetch()} />}
      {found.isSuccess && !passages.length && (
        <p className="empty">{query ? "Nothing fits." : "Nothing is here yet. The agent puts here what it should find later; so can you."}</p>
      )}
      <ul className="passages">
        {passages.map((passage) => (
          <li key={passage.id} className="passage">
            <p className="plain">{passage.text}</p>
            <div className="block-end">
              {passage.score !== null && <span className="muted small">score {passage.score.toPrecision(3)}</span>}
              {passage.tags?.map((tag) => <span className="tag" key={tag}>{tag}</span>)}
              <span className="muted small">{ago(passage.created_at)}</span>
              <span className="spacer" />
              {refusal === null && <IconButton label="Delete this passage" icon={Trash2} onClick={() => void drop(passage)} />}
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

function NewPassage({ agentId, done }: { agentId: string; done: () => Promise<void> }) {
  const [isOpen, setOpen] = useState(false);
  const [sentence, setSentence] = useState("");
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const tags = String(form.get("tags")).split(",").map((tag) => tag.trim()).filter(Boolean);
    try {
      await insert(agentId, String(form.get("text")), tags);
      setOpen(false);
      setSentence("");
      await done();
    } catch (error) {
      setSentence(problemOf(error).sentence);
    }
  };
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>Add a passage</button>;
  return (
    <form className="new-passage" onSubmit={submit}>
      <textarea name="text" aria-label="Text of the passage" required rows={3} />
      <input name="tags" aria-label="Tags of the passage" placeholder="Tags, with commas" />
      {sentence && <p role="alert" className="error-text small">{sentence}</p>}
      <div className="block-end">
        <button type="button" onClick={() => setOpen(false)}>Cancel</button>
        <button type="submit" className="primary">Add</button>
      </div>
    </form>
  );
}
