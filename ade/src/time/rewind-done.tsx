import { useQueryClient } from "@tanstack/react-query";
import type { Place } from "../chat/place";
import { sessionOf } from "../chat/sessions";
import { ProblemBox } from "../ui/problem-box";
import { useAction } from "../ui/use-action";
import { rewind, type Rewound, type RewoundBlock } from "./checkpoints";

const OUTCOMES: Record<string, string> = { restored: "set back", left: "left as it is", missing: "no longer there" };
const SCOPES: Record<string, string> = {
  conversation: "of this conversation alone",
  agent: "for all conversations of this agent",
  agents: "other agents see it, too",
};

/** What going back did, and the way forth again. */
export function RewindDone({ place, done, again }: { place: Place; done: Rewound; again: (next: Rewound | null) => void }) {
  const action = useAction();
  const queries = useQueryClient();
  const left = done.left_checkpoint_id;
  const undo = (): Promise<boolean> =>
    action.run(async () => {
      if (!left) return;
      await rewind(place, left, true);
      await sessionOf(place).startOver();
      await queries.invalidateQueries({ queryKey: ["checkpoints", place.agentId] });
      await queries.invalidateQueries({ queryKey: ["blocks", place.agentId] });
      again(null);
    });
  return (
    <div className="done" role="status">
      <strong>You went back.</strong>
      <ul className="small">{done.blocks.map((block) => <li key={block.label}>{sentence(block)}</li>)}</ul>
      <div className="block-end">
        {left && <button type="button" onClick={() => void undo()}>Undo: go forth again</button>}
        <button type="button" onClick={() => again(null)}>Close</button>
      </div>
      {action.problem && <ProblemBox title="Could not go forth again" problem={action.problem} />}
    </div>
  );
}

function sentence(block: RewoundBlock): string {
  const scope = block.scope ? ` (${SCOPES[block.scope]})` : "";
  return `${block.label}: ${OUTCOMES[block.outcome ?? ""] ?? block.outcome}${scope}`;
}
