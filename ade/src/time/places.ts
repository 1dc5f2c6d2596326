import type { Part } from "../chat/parts";
import type { Checkpoint } from "./checkpoints";

/** Where in a conversation a person points: after something that was said, or before it. */
export type Pointer = { at: string } | { before: string };

/** Returns the checkpoints that come after a part, or before a message of a person; the best first. */
export function pointerTo(part: Part): Pointer | null {
  if (part.kind === "user") return part.messageId ? { before: part.messageId } : null;
  if (part.kind === "note" || (!part.stepId && !part.runId)) return null;
  return { at: `${part.stepId},${part.runId}` };
}

/** Finds the checkpoint that a pointer means among those of a conversation, newest first. */
export function checkpointOf(pointer: Pointer, checkpoints: readonly Checkpoint[]): Checkpoint | undefined {
  if ("at" in pointer) {
    // The last step of a run has none of its own: the end of the run is its place.
    const ids = pointer.at.split(",").filter(Boolean);
    const found = ids.map((id) => checkpoints.find((each) => each.id === id || (each.kind === "run" && each.run_id === id)));
    return found.find(Boolean);
  }
  const input = checkpoints.findIndex((each) => each.id === pointer.before || each.message_id === pointer.before);
  return input < 0 ? undefined : checkpoints.slice(input + 1).find((each) => each.kind !== "input");
}
