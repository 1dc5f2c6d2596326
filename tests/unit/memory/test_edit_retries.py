"""Edits that lose against others are made again, in line, and reported when it takes too long."""

import asyncio
from uuid import UUID

import pytest

from services.common.errors import Aborted
from services.memory.blocks.conflicts import EditRetries
from services.memory.core.errors import VersionConflict

BLOCK = UUID(int=1)


async def test_an_edit_without_conflict_is_made_once() -> None:
    async def edit() -> str:
        return "done"

    assert await EditRetries().run(edit) == "done"


async def test_a_hundred_writers_all_get_through_in_about_as_many_tries() -> None:
    """Against a row that only takes a version it has: compare and set, with a pause between."""
    version, tries = 0, 0

    async def edit() -> int:
        nonlocal version, tries
        tries += 1
        seen = version
        await asyncio.sleep(0)
        if seen != version:
            raise VersionConflict(BLOCK)
        version += 1
        return version

    conflicts = EditRetries()
    assert sorted(await asyncio.gather(*(conflicts.run(edit) for _ in range(100)))) == list(range(1, 101))
    assert tries < 250


async def test_who_never_gets_through_is_told() -> None:
    async def edit() -> None:
        raise VersionConflict(BLOCK)

    with pytest.raises(Aborted) as aborted:
        await EditRetries().run(edit)
    assert aborted.value.reason == "BLOCK_VERSION_CONFLICT"


async def test_other_errors_pass() -> None:
    async def edit() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        await EditRetries().run(edit)
