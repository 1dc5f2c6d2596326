"""Rewinds: a conversation is made to end at a checkpoint, and its blocks are set back to what they were there.

Two services have a part in it, so it is a saga, whose next step is stored. First the conversation is held: what is said
to it waits in its line, as behind a run, and an order in the outbox says that there is a rewind to finish. Then memory
sets the blocks back, once per rewind, however often it is asked. Last the conversation is cut and let go in one
transaction. Whoever asked does all this; where it, or its replica, is lost, the outbox does the rest. A rewind that
memory refuses is given up, and has changed nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from uuid import UUID

from services.agent.resources.checkpoints.ports import (
    BegunRewind,
    BlockSeen,
    CheckpointStore,
    NewRewind,
    Outcome,
    PlannedBlock,
    Point,
    RestoreResult,
    Rewind,
    RewindStore,
    RewoundBlock,
    Scope,
    VersionedMemories,
)
from services.agent.resources.checkpoints.versions import versions_at
from services.agent.resources.outbox.ports import OutboxEntry
from services.agent.resources.outbox.service import Handler
from services.agent.resources.refusals import REFUSALS
from services.common.errors import Aborted

FINISH_REWIND = "finish_rewind"
# With these the memory service has made nothing.
_NOTHING = RestoreResult({}, frozenset(), frozenset())

_log = logging.getLogger(__name__)


class Rewinds:
    """Makes rewinds, and finishes those that were left."""

    def __init__(self, store: RewindStore, checkpoints: CheckpointStore, memories: VersionedMemories) -> None:
        self._store = store
        self._checkpoints = checkpoints
        self._memories = memories

    async def make(self, new: NewRewind, agent_id: UUID, *, keep_blocks: bool) -> Rewind:
        """Returns the rewind; one that was made, or has begun, is the same. Raises LociError."""
        found = await self._store.find(new)
        if isinstance(found, Rewind):
            return found
        if found is None:
            point = await self._checkpoints.find(new.organization_id, new.conversation_id, new.to)
            plan = await self._plan(new, agent_id, point, keep=keep_blocks)
            found = BegunRewind(new, agent_id, plan)
            await self._store.begin(found)
        return await self._finish(found)

    async def finish(self, order: OutboxEntry) -> bool:
        """Finishes a rewind that was left; False where the conversation is busy."""
        begun = await self._store.begun(order.organization_id, order.subject_id, order.id)
        if begun is None:
            return True
        try:
            await self._finish(begun)
        except Aborted:
            return False
        except REFUSALS as refusal:
            _log.warning("rewind %s was given up: %s", order.id, refusal)
        return True

    def handlers(self) -> Mapping[str, Handler]:
        """Returns what handles the outbox entries of rewinds."""
        return {FINISH_REWIND: self.finish}

    async def _finish(self, begun: BegunRewind) -> Rewind:
        try:
            blocks = await self._restore(begun)
        except REFUSALS:
            await self._store.give_up(begun)
            raise
        return await self._store.finish(begun, blocks)

    async def _plan(self, new: NewRewind, agent_id: UUID, point: Point, *, keep: bool) -> tuple[PlannedBlock, ...]:
        """Returns the conversation's blocks of today and what is to become of them."""
        blocks = await self._memories.blocks(agent_id, new.conversation_id)
        ids = (new.organization_id, agent_id, new.conversation_id)
        versions = await versions_at(self._checkpoints, self._memories, *ids, point, blocks)
        seen = {block.id: block for block in blocks}
        copies = any(block.own for block in blocks)
        return tuple(
            _planned(block_id, version, seen.get(block_id), copies=copies, keep=keep)
            for block_id, version in versions.items()
        )

    async def _restore(self, begun: BegunRewind) -> Sequence[RewoundBlock]:
        new, restored = begun.new, _NOTHING
        wanted = {block.block_id: block.version for block in begun.plan if block.wanted}
        if wanted:
            restored = await self._memories.restore(begun.agent_id, new.conversation_id, wanted, f"rewind {new.id}")
        return [_rewound(block, restored) for block in begun.plan]


def _planned(block_id: UUID, version: int, block: BlockSeen | None, *, copies: bool, keep: bool) -> PlannedBlock:
    own = block is not None and block.own
    return PlannedBlock(
        block_id=block_id,
        label=None if block is None else block.label,
        version=version,
        own=own,
        # A conversation with copies of its own leaves alone what others see.
        wanted=not keep and (own or not copies),
    )


def _rewound(block: PlannedBlock, restored: RestoreResult) -> RewoundBlock:
    label = restored.labels.get(block.block_id, block.label or "")
    scope: Scope = "conversation" if block.own else "agent"
    outcome: Outcome = "left"
    if block.block_id in restored.labels:
        outcome = "restored"
        scope = "agents" if block.block_id in restored.shared else scope
    elif block.block_id in restored.missing or block.label is None:
        outcome, scope = "missing", ""
    return RewoundBlock(block.block_id, label, block.version, outcome, scope)
