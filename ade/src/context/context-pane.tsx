import { useEffect, useRef, useState } from "react";
import type { Place } from "../chat/place";
import { Loaded } from "../ui/loaded";
import { percent, whole } from "../ui/numbers";
import { ProblemBox } from "../ui/problem-box";
import { TextBlock } from "../ui/text-block";
import { useAction } from "../ui/use-action";
import { changesOf, type Overview, previewRequest, type Segment, segmentsOf, useOverview } from "./overview";

/** From so much of the window on, earlier messages are summarised. */
const COMPACTION = 0.9;

/** What fills the context window, in tokens, with the real text of each part. */
export function ContextPane({ place }: { place: Place }) {
  const overview = useOverview(place);
  return (
    <div className="pane">
      <Loaded query={overview} what="the context window">{(data) => <Window overview={data} />}</Loaded>
      <Preview place={place} />
    </div>
  );
}

function Window({ overview }: { overview: Overview }) {
  const segments = segmentsOf(overview);
  const [open, setOpen] = useState<string | null>(null);
  const before = useRef<{ overview: Overview; segments: Segment[] }>(undefined);
  const [changes, setChanges] = useState<ReturnType<typeof changesOf>>(new Map());
  useEffect(() => {
    const now = { overview, segments: segmentsOf(overview) };
    if (before.current && before.current.overview !== overview) setChanges(changesOf(before.current.segments, now.segments));
    before.current = now;
  }, [overview]);
  const most = overview.context_window_size_max;
  const used = sum(segments.map((each) => each.tokens));
  return (
    <>
      <p>
        <strong>{whole(used)}</strong> of {whole(most)} tokens <span className="muted">({percent(used, most)}, estimated)</span>
      </p>
      <Bar segments={segments} most={most} choose={setOpen} />
      {used > most * COMPACTION && <p className="waiting-text small">Nearly full: with the next turn, earlier messages are summarised.</p>}
      <ul className="segments">
        {segments.map((each) => {
          const change = changes.get(each.key);
          return (
            <li key={each.key}>
              <button
                type="button"
                className="version segment"
                aria-expanded={open === each.key}
                onClick={() => setOpen(open === each.key ? null : each.key)}
              >
                <span className={`swatch fill-${each.key}`} aria-hidden />
                <span className="cut">{each.label}{change && <span className="changed small"> changed</span>}</span>
                <span className="small muted">
                  {change && change.tokens !== 0 && `${change.tokens > 0 ? "+" : ""}${whole(change.tokens)} · `}{whole(each.tokens)}
                </span>
              </button>
              {open === each.key && (
                <div className="version-body">
                  {each.texts.map(({ label, text }, at) => <TextBlock key={at} label={label} text={text} />)}
                  {each.texts.length === 0 && <p className="muted small">It has no text.</p>}
                </div>
              )}
            </li>
          );
        })}
      </ul>
      <p className="muted small">
        Outside of the window: {whole(overview.num_archival_memory)} passages in the archive, {whole(overview.num_recall_memory)} messages in the history.
      </p>
    </>
  );
}

/** The window as a bar: each part as wide as its tokens, the rest free. */
function Bar({ segments, most, choose }: { segments: Segment[]; most: number; choose: (key: string) => void }) {
  // What is there stays visible in a window of a million.
  const widths = segments.map((each) => Math.max((each.tokens / Math.max(most, 1)) * 1000, each.tokens ? 3 : 0));
  return (
    <svg className="window-bar" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label={sentence(segments, most)}>
      <rect className="free" x={0} y={0} width={1000} height={24} />
      {segments.map((each, at) => (
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- the list below has buttons
        <rect key={each.key} className={`fill-${each.key}`} x={sum(widths.slice(0, at))} y={0} width={widths[at]} height={24} onClick={() => choose(each.key)}>
          <title>{`${each.label}: ${whole(each.tokens)} tokens`}</title>
        </rect>
      ))}
      <line className="compaction" x1={COMPACTION * 1000} x2={COMPACTION * 1000} y1={0} y2={24} />
    </svg>
  );
}

function sum(numbers: number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}

function sentence(segments: Segment[], most: number): string {
  return `Of ${whole(most)} tokens: ${segments.map((each) => `${each.label} ${whole(each.tokens)}`).join(", ")}.`;
}

/** Shows the request to the provider that a message would make, without sending it. */
function Preview({ place }: { place: Place }) {
  const [text, setText] = useState("");
  const [request, setRequest] = useState<string | null>(null);
  const action = useAction();
  return (
    <details>
      <summary>The exact request</summary>
      <form
        className="file-line"
        onSubmit={(event) => {
          event.preventDefault();
          void action.run(async () => setRequest(JSON.stringify(await previewRequest(place, text || "Hello"), null, 2)));
        }}
      >
        <input aria-label="A message to try" placeholder="A message to try" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit" aria-disabled={action.isBusy}>Show</button>
      </form>
      <p className="muted small">Nothing is sent or stored.</p>
      {action.problem && <ProblemBox title="Could not make the request" problem={action.problem} />}
      {request !== null && <TextBlock label="Request to the provider" text={request} />}
    </details>
  );
}
