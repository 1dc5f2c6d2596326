"""What blocks were at a point in the past."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from services.agent.resources.checkpoints.model import with_edits
from services.agent.resources.checkpoints.ports import BlockSeen, CheckpointStore, Point, VersionedMemories


async def versions_at(
    store: CheckpointStore,
    memories: VersionedMemories,
    organization_id: UUID,
    agent_id: UUID,
    conversation_id: UUID,
    point: Point,
    blocks: Sequence[BlockSeen],
) -> Mapping[UUID, int]:
    """Returns the versions that the conversation's blocks of today had at the point.

    What was made by copying when the conversation or its agent was forked has no version of an earlier time: its first
    one, that of the fork, is the nearest.
    """
    checkpoint, copies = point.checkpoint, [block.id for block in blocks if block.own]
    if copies and checkpoint.conversation_id != conversation_id:
        return dict.fromkeys(copies, 1)
    if checkpoint.agent_id != agent_id:
        inheritance = await store.inheritance(organization_id, agent_id)
        return dict.fromkeys(() if inheritance is None else inheritance.block_ids, 1)
    edits = await memories.edits(checkpoint.run_ids) if checkpoint.run_ids else ()
    return with_edits(checkpoint, edits).versions
