import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { problemOf } from "../api/errors";
import { ProblemBox } from "../ui/problem-box";
import { DiffLines } from "./block-history";
import { type Block, useDiff } from "./blocks";

interface Props {
  blockId: string;
  /** One version, or two: `2` (what it changed) or `1..3`. */
  versions: string;
}

/** What changed between two versions of a block, by an address that can be passed on. */
export function BlockPage({ blockId, versions }: Props) {
  const [first = "1", last] = versions.split("..");
  const to = Number(last ?? first);
  const from = last ? Number(first) : to - 1;
  const block = useQuery({ queryKey: ["block", blockId], queryFn: async () => (await api().blocks.retrieve(blockId)) as unknown as Block });
  const diff = useDiff(blockId, from, to);
  const error = block.error ?? diff.error;
  return (
    <main className="page block-page">
      <title>{`${block.data?.label ?? "Block"} v${versions} · Loci`}</title>
      <h1><code>{block.data?.label}</code> {from < 1 ? `version ${to}` : `from version ${from} to ${to}`}</h1>
      {error && <ProblemBox title="Could not load the versions" problem={problemOf(error)} />}
      {from < 1 && <p className="muted">This is its first version.</p>}
      {diff.data && (
        <>
          <p className="muted small">{diff.data.added_lines} lines added, {diff.data.removed_lines} removed</p>
          <DiffLines text={diff.data.diff} />
        </>
      )}
    </main>
  );
}
