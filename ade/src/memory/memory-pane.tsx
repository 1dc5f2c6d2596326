import { problemOf } from "../api/errors";
import { ProblemBox } from "../ui/problem-box";
import { BlockEditor } from "./block-editor";
import { useBlocks } from "./blocks";

/** What the agent always has in view: its blocks. */
export function MemoryPane({ agentId }: { agentId: string }) {
  const blocks = useBlocks(agentId);
  if (blocks.isError && !blocks.data) {
    return <ProblemBox title="Could not load the memory" problem={problemOf(blocks.error)} retry={() => void blocks.refetch()} />;
  }
  return (
    <div className="memory">
      {blocks.data?.length === 0 && <p className="empty">This agent has no blocks.</p>}
      {blocks.data?.map((block) => <BlockEditor key={block.id} block={block} agentId={agentId} />)}
    </div>
  );
}
