import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useSearch } from "wouter";
import { problemOf } from "../api/errors";
import type { Place } from "../chat/place";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { type Checkpoint, type Rewound, useCheckpoints } from "./checkpoints";
import { Journey } from "./journey";
import { checkpointOf, type Pointer } from "./places";
import { RewindDone } from "./rewind-done";

const KINDS: Record<string, string> = { input: "Message", step: "Step", run: "Answered" };

/** The places to which a conversation can go back, and where another can begin. */
export function TimePane({ place }: { place: Place }) {
  const search = new URLSearchParams(useSearch());
  const at = search.get("at");
  const before = search.get("before");
  const checkpoints = useCheckpoints(place);
  const all = useMemo(() => checkpoints.data?.pages.flat() ?? [], [checkpoints.data]);
  const pointer: Pointer | null = useMemo(() => (at ? { at } : before ? { before } : null), [at, before]);
  const pointed = pointer ? checkpointOf(pointer, all) : undefined;
  const [open, setOpen] = useState<string | null>(null);
  const [done, setDone] = useState<Rewound | null>(null);
  const queries = useQueryClient();
  const openId = open ?? pointed?.id;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = checkpoints;
  useEffect(() => setOpen(null), [pointer]);
  useEffect(() => {
    // What is pointed at may be further back.
    if (pointer && !pointed && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [pointer, pointed, hasNextPage, isFetchingNextPage, fetchNextPage]);

  if (checkpoints.isError && !all.length) {
    return <ProblemBox title="Could not load the checkpoints" problem={problemOf(checkpoints.error)} retry={() => void checkpoints.refetch()} />;
  }
  return (
    <div className="pane">
      <p className="muted small">Go back with what the agent knew then, or begin something new from there. Nothing is erased.</p>
      {done && <RewindDone place={place} done={done} again={setDone} />}
      {before && checkpoints.isSuccess && !pointed && !hasNextPage && (
        <p className="small">Before the first message there is no place to go back to. Begin a new conversation instead.</p>
      )}
      {checkpoints.isSuccess && all.length === 0 && <p className="empty">Nothing was said yet: there is no place to go back to.</p>}
      <ol className="rows" aria-label="Checkpoints, the newest first">
        {all.map((each, index) => (
          <li key={each.id} data-kind-of={each.kind}>
            <button
              type="button"
              className="version"
              aria-expanded={openId === each.id}
              onClick={() => setOpen(openId === each.id ? "" : each.id)}
            >
              <span className="small">{KINDS[each.kind ?? ""] ?? each.kind}</span>
              <span className="cut">{each.label || "(no text)"}</span>
              <span className="muted small">{index === 0 ? "here" : ago(each.created_at)}</span>
            </button>
            {openId === each.id && (
              <Journey
                place={place}
                checkpoint={each}
                isNewest={index === 0}
                text={before && pointed?.id === each.id ? sayAgain(all, before) : null}
                rewound={(answer) => {
                  setDone(answer);
                  setOpen("");
                  void queries.invalidateQueries({ queryKey: ["checkpoints", place.agentId] });
                }}
              />
            )}
          </li>
        ))}
      </ol>
      {hasNextPage && <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>Show older ones</button>}
    </div>
  );
}

/** Returns what was said where a person went back to say it otherwise. */
function sayAgain(checkpoints: readonly Checkpoint[], messageId: string): string | null {
  return checkpoints.find((each) => each.id === messageId || each.message_id === messageId)?.label ?? null;
}
