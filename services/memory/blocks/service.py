"""Blocks changed by the API, and journeys through the history of one."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.common.errors import FailedPrecondition
from services.memory.blocks.conflicts import EditRetries, check_version
from services.memory.blocks.model import (
    Block,
    BlockKey,
    BlockVersion,
    Operation,
    Origin,
    Restoration,
    validate,
)
from services.memory.core.editing import undo
from services.memory.core.editing.comparison import Difference, difference
from services.memory.core.ports.blocks import BlockStore, HistoryStore

# A version by its number, or the one that stood at a time.
VersionKey = int | datetime


class BlockService:
    """Every method raises NotFound (BLOCK_NOT_FOUND, BLOCK_VERSION_NOT_FOUND). Those that change a block make a version
    by the user, and raise Aborted (BLOCK_VERSION_CONFLICT) where `expected` is not None and not the block's version.
    """

    def __init__(self, store: BlockStore, history: HistoryStore, retries: EditRetries) -> None:
        self._store = store
        self._history = history
        self._retries = retries

    async def update(
        self, organization_id: UUID, user_id: UUID, key: BlockKey, changes: Mapping[str, Any], expected: int | None
    ) -> Block:
        """Makes one new version with these changes; none where they change nothing.

        Raises Refused, AlreadyExists (BLOCK_LABEL_TAKEN), too.
        """

        async def once() -> Block:
            before = await self._current(organization_id, key, expected)
            after = validate(replace(before, **changes))
            if after == before:
                return before
            return await self._store.commit(organization_id, after, Operation.SET, Origin(actor_id=user_id))

        return await self._retries.run(once)

    async def version(self, organization_id: UUID, key: BlockKey, which: VersionKey) -> BlockVersion:
        """Returns one version."""
        block = await self._store.get(organization_id, key)
        return await self._find(organization_id, block, which)

    async def diff(self, organization_id: UUID, key: BlockKey, earlier: int, later: int) -> Difference:
        """Returns the changes between two versions; 0 stands for the newest as the later one."""
        block = await self._store.get(organization_id, key)
        one = await self._find(organization_id, block, earlier)
        other = await self._find(organization_id, block, later or block.version)
        # In a thread, since values of megabytes are compared for a while.
        return await asyncio.to_thread(difference, one.value, other.value)

    async def restore(
        self, organization_id: UUID, user_id: UUID, key: BlockKey, which: VersionKey, expected: int | None
    ) -> Block:
        """Brings the value of a version back; makes no version where the block has that value."""

        async def once() -> Block:
            block = await self._current(organization_id, key, expected)
            then = await self._find(organization_id, block, which)
            restored = Restoration(version=then.version)
            return await self._bring_back(organization_id, user_id, block, then, Operation.RESTORE, restored)

        return await self._retries.run(once)

    async def undo(self, organization_id: UUID, user_id: UUID, key: BlockKey, expected: int | None) -> Block:
        """Takes the newest change of the value back. Raises FailedPrecondition (BLOCK_NOTHING_TO_UNDO)."""

        async def once() -> Block:
            block = await self._current(organization_id, key, expected)
            now = await self._history.changed(organization_id, block.id, block.version)
            before = undo.before(now)
            if before is None:
                raise FailedPrecondition(
                    f"block block-{block.id} has its first value; there is no change to take back",
                    reason="BLOCK_NOTHING_TO_UNDO",
                )
            then = await self._history.changed(organization_id, block.id, before)
            return await self._bring_back(
                organization_id, user_id, block, then, Operation.UNDO, undo.undo_restoration(now, then)
            )

        return await self._retries.run(once)

    async def redo(self, organization_id: UUID, user_id: UUID, key: BlockKey, expected: int | None) -> Block:
        """Makes the change again that was taken back. Raises FailedPrecondition (BLOCK_NOTHING_TO_REDO)."""

        async def once() -> Block:
            block = await self._current(organization_id, key, expected)
            now = await self._history.changed(organization_id, block.id, block.version)
            if now.redo_version is None:
                raise FailedPrecondition(
                    f"no change of block block-{block.id} was taken back last; there is nothing to make again",
                    reason="BLOCK_NOTHING_TO_REDO",
                )
            then = await self._history.version(organization_id, block.id, now.redo_version)
            return await self._bring_back(
                organization_id, user_id, block, then, Operation.REDO, undo.redo_restoration(then)
            )

        return await self._retries.run(once)

    async def _current(self, organization_id: UUID, key: BlockKey, expected: int | None) -> Block:
        block = await self._store.get(organization_id, key)
        check_version(block, expected)
        return block

    async def _find(self, organization_id: UUID, block: Block, which: VersionKey) -> BlockVersion:
        if isinstance(which, datetime):
            return await self._history.as_of(organization_id, block.id, which)
        return await self._history.version(organization_id, block.id, which)

    async def _bring_back(
        self,
        organization_id: UUID,
        user_id: UUID,
        block: Block,
        then: BlockVersion,
        operation: Operation,
        restored: Restoration,
    ) -> Block:
        if then.value == block.value:
            return block
        after = undo.bring_back(block, then.value, then.limit)
        return await self._store.commit(organization_id, after, operation, Origin(actor_id=user_id), restored=restored)
