import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { giveBack } from "../chat/drafts";
import { chatPath, type Place, routeId } from "../chat/place";
import { sessionOf } from "../chat/sessions";
import { useBlocks } from "../memory/blocks";
import { navigate } from "../router";
import { useRefusal } from "../shell/access-gate";
import { ProblemBox } from "../ui/problem-box";
import { useAction } from "../ui/use-action";
import { branch, type Checkpoint, forkAgent, rewind, type Rewound } from "./checkpoints";

interface Props {
  place: Place;
  checkpoint: Checkpoint;
  isNewest: boolean;
  /** What goes into the editor after going back; null: nothing. */
  text: string | null;
  rewound: (answer: Rewound) => void;
}

/** What can be done with a checkpoint, and what the agent knew there. */
export function Journey({ place, checkpoint, isNewest, text, rewound }: Props) {
  const mayRewind = useRefusal("write_agent", place.agentId);
  const mayFork = useRefusal("write");
  const action = useAction();
  const queries = useQueryClient();
  const [withBlocks, setWithBlocks] = useState(true);
  const goBack = (): Promise<boolean> =>
    action.run(async () => {
      const answer = await rewind(place, checkpoint.id, withBlocks);
      await sessionOf(place).startOver();
      if (text) giveBack(routeId(place), text);
      await queries.invalidateQueries({ queryKey: ["blocks", place.agentId] });
      rewound(answer);
    });
  return (
    <div className="version-body journey">
      <BlocksThen place={place} versions={checkpoint.block_versions} />
      <label className="choice small">
        <input type="checkbox" checked={withBlocks} onChange={(event) => setWithBlocks(event.target.checked)} />
        Set the memory back, too
      </label>
      <div className="block-end">
        <button
          type="button"
          className="primary"
          disabled={mayRewind !== null || isNewest}
          aria-disabled={action.isBusy}
          title={mayRewind ?? (isNewest ? "The conversation is here." : undefined)}
          onClick={() => void goBack()}
        >
          Go back here
        </button>
        <button
          type="button"
          disabled={mayFork !== null}
          title={mayFork ?? "A new agent with this past and this memory"}
          onClick={() => void action.run(async () => {
            const id = await forkAgent(place, checkpoint.id, "");
            await queries.invalidateQueries({ queryKey: ["agents"] });
            navigate(`/agents/${id}`);
          })}
        >
          New agent from here
        </button>
        <button
          type="button"
          disabled={mayRewind !== null}
          title={mayRewind ?? "A conversation of this agent that begins with this past"}
          onClick={() => void action.run(async () => {
            const id = await branch(place, checkpoint.id);
            await queries.invalidateQueries({ queryKey: ["conversations", place.agentId] });
            navigate(chatPath({ agentId: place.agentId, conversationId: id }));
          })}
        >
          New conversation from here
        </button>
      </div>
      {action.problem && <ProblemBox title="Could not go there" problem={action.problem} />}
    </div>
  );
}

/** The blocks as the agent saw them, with the way to what changed since. */
function BlocksThen({ place, versions }: { place: Place; versions: Record<string, number> }) {
  const blocks = useBlocks(place.agentId);
  const known = blocks.data?.filter((block) => versions[block.id] !== undefined) ?? [];
  if (!known.length) return <p className="muted small">No block of the agent is older than this place.</p>;
  return (
    <ul className="small blocks-then">
      {known.map((block) => (
        <li key={block.id}>
          <code>{block.label}</code> was at{" "}
          <Link href={`/blocks/${block.id}/v/${versions[block.id]}`}>version {versions[block.id]}</Link>
        </li>
      ))}
    </ul>
  );
}
