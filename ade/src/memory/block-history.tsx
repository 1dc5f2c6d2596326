import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { problemOf } from "../api/errors";
import { ProblemBox } from "../ui/problem-box";
import { ago } from "../ui/time";
import { type BlockVersion, useDiff, useVersions } from "./blocks";

interface Props {
  blockId: string;
  /** The newest version. */
  now: number;
  /** The version that is shown; null: none. */
  shown: number | null;
  show: (version: number | null) => void;
  restore?: (version: number) => void;
}

/** The versions of a block: who made each, what it changed, and the way back. */
export function BlockHistory({ blockId, now, shown, show, restore }: Props) {
  const versions = useVersions(blockId, now);
  const list = useRef<HTMLOListElement>(null);
  const isThere = versions.data !== undefined;
  useEffect(() => {
    // Whoever goes over them by keys hears which one it is.
    list.current?.querySelector<HTMLElement>("[aria-expanded=true]")?.focus();
  }, [shown, isThere]);
  if (versions.isError) return <ProblemBox title="Could not load the history" problem={problemOf(versions.error)} />;
  return (
    <ol className="versions" ref={list} aria-label="Versions, the newest first">
      {versions.data?.map((version) => (
        <li key={version.version}>
          <button
            type="button"
            className="version"
            aria-expanded={shown === version.version}
            onClick={() => show(shown === version.version ? null : version.version)}
          >
            <span>v{version.version}</span>
            <span className="cut">{words(version)}</span>
            <span className="muted small">{ago(version.created_at)}</span>
          </button>
          {shown === version.version && (
            <div className="version-body">
              <DiffView blockId={blockId} version={version} />
              <Link href={`/blocks/${blockId}/v/${version.version}`} className="small">Link to this change</Link>
              {version.run_id && <Link href={`/runs/${version.run_id}`} className="small">Why: the run that wrote it</Link>}
              {restore && version.version !== now && (
                <button type="button" onClick={() => restore(version.version)}>Restore this value</button>
              )}
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

function words(version: BlockVersion): string {
  const who = version.agent_id && version.run_id ? "the agent" : "a person";
  if (version.restored_version) return `${version.operation} of v${version.restored_version} by ${who}`;
  return `${VERBS[version.operation] ?? version.operation} by ${who}`;
}

const VERBS: Record<string, string> = {
  create: "made",
  set: "changed",
  append: "added to",
  insert: "added to",
  replace: "changed",
  rewrite: "rewritten",
  patch: "changed",
};

function DiffView({ blockId, version }: { blockId: string; version: BlockVersion }) {
  const diff = useDiff(blockId, version.version - 1, version.version);
  if (version.version === 1) return <pre className="plain" tabIndex={0}>{version.value || "(empty)"}</pre>;
  if (diff.isError) return <ProblemBox title="Could not load the difference" problem={problemOf(diff.error)} />;
  return <DiffLines text={diff.data?.diff ?? ""} />;
}

/** A unified diff: lines that came and went, told apart by their signs, too. */
export function DiffLines({ text }: { text: string }) {
  const lines = text.split("\n").filter((line) => !line.startsWith("@@"));
  if (!text) return <p className="muted small">The value did not change.</p>;
  return (
    <pre className="diff" tabIndex={0}>
      {lines.map((line, at) => <div key={at} className={KIND[line[0] ?? " "] ?? ""}>{line || " "}</div>)}
    </pre>
  );
}

const KIND: Record<string, string> = { "+": "added", "-": "removed" };
