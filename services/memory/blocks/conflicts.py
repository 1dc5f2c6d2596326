"""Concurrent edits of one block, all of which come to pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from services.common.errors import Aborted
from services.memory.blocks.model import Block
from services.memory.core.errors import VersionConflict
from services.memory.retries import retry

T = TypeVar("T")
_ATTEMPTS = 200
_LONGEST_PAUSE = 0.02


async def retry_on_conflict(edit: Callable[[], Awaitable[T]]) -> T:
    """Awaits `edit`, which reads, changes and commits, until it raises no VersionConflict.

    Raises Aborted (BLOCK_VERSION_CONFLICT) when that takes seconds.
    """
    try:
        return await retry(edit, VersionConflict, attempts=_ATTEMPTS, longest_pause=_LONGEST_PAUSE)
    except VersionConflict as conflict:
        sentence = f"block block-{conflict.block_id} is changed by too many at once"
        raise Aborted(sentence, reason="BLOCK_VERSION_CONFLICT") from None


class EditRetries:
    """Repeats edits that lost against another.

    The first try takes no lock. Who loses stands in line in this process, one per block, so that replicas
    only meet once each; between them chance decides.
    """

    def __init__(self) -> None:
        self._edit_queues: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    async def run(self, edit: Callable[[], Awaitable[T]]) -> T:
        """Awaits `edit` as `retry_on_conflict` does."""
        try:
            return await edit()
        except VersionConflict as conflict:
            block_id = conflict.block_id
        line = self._edit_queues.setdefault(block_id, asyncio.Lock())
        async with line:
            return await retry_on_conflict(edit)


def check_version(block: Block, expected: int | None) -> None:
    """Raises Aborted (BLOCK_VERSION_CONFLICT) where a version is expected that the block is not at."""
    if expected not in (None, block.version):
        raise Aborted(
            f"block block-{block.id} is at version {block.version}, not {expected}; read it again",
            reason="BLOCK_VERSION_CONFLICT",
            metadata={"version": str(block.version)},
        )
