"""Edits of one block that wait are stored as one change, in order; each is told what became of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from services.common.core.refusals import Refused
from services.memory.agent_tools.edit_queues import EditQueues
from services.memory.agent_tools.model import CallRecord, ValueChange, ValueEdit
from services.memory.blocks.model import Block, Operation, Origin
from services.memory.core.errors import VersionConflict
from tests.unit.memory.test_blocks import BLOCK

TENANT = UUID(int=7)


class Store:
    """One block, as a database keeps it; `changes` are the sizes of those stored."""

    def __init__(self) -> None:
        self.block = replace(BLOCK, value="", version=1)
        self.changes: list[int] = []

    async def commit_values(self, _: UUID, changes: Sequence[ValueChange]) -> list[list[Block] | None]:
        for _turn in range(20):
            await asyncio.sleep(0)
        [change] = changes
        if change.before.version != self.block.version:
            return [None]
        assert change.before.value == self.block.value
        self.changes.append(len(change.edits))
        after = []
        for edit in change.edits:
            self.block = replace(self.block, value=edit.value, version=self.block.version + 1)
            after.append(self.block)
        return [after]


def lines_of(store: Store) -> EditQueues:
    stores: Any = store
    return EditQueues(stores, stores)


def edit_of(block: Block, key: str) -> ValueEdit:
    """Adds its key, but "-" is refused and "=" changes nothing."""
    if key == "-":
        raise Refused("TOOL_REFUSED", "no")
    value = block.value if key == "=" else block.value + key
    record = CallRecord(
        call_key=key, agent_id=TENANT, tool_name="t", arguments_hash=b"", tool_return=value, is_error=False
    )
    return ValueEdit(value=value, operation=Operation.APPEND, origin=Origin(actor_id=TENANT), record=record)


async def run_edits(lines: EditQueues, seen: Block, keys: str) -> list[Any]:
    """What became of the edits: values and versions, errors."""
    edits = (lines.edit(TENANT, key, seen, partial(edit_of, key=key)) for key in keys)
    created: list[Any] = await asyncio.gather(*edits, return_exceptions=True)
    return [one if isinstance(one, Exception) else (one[0].value, one[1] and one[1].version) for one in created]


async def test_edits_are_applied_one_after_the_other() -> None:
    store = Store()
    lines = lines_of(store)
    seen = store.block
    first = asyncio.create_task(run_edits(lines, seen, "a"))
    for _turn in range(5):
        await asyncio.sleep(0)
    answer = await run_edits(lines, seen, "b-c=d")
    assert await first == [("a", 2)]
    assert (answer[0], answer[2], answer[3], answer[4]) == (("ab", 3), ("abc", 4), ("abc", None), ("abcd", 5))
    assert isinstance(answer[1], Refused)
    assert (store.block.value, store.changes) == ("abcd", [1, 3])


async def test_who_sends_a_call_twice_looks_again() -> None:
    store = Store()
    answer = await run_edits(lines_of(store), store.block, "aa")
    assert answer[0] == ("a", 2)
    assert isinstance(answer[1], VersionConflict)


async def test_a_block_that_changed_elsewhere_is_looked_up_again() -> None:
    store = Store()
    lines, seen = lines_of(store), store.block
    store.block = replace(store.block, value="other", version=2)
    assert all(isinstance(answer, VersionConflict) for answer in await run_edits(lines, seen, "a-b"))
    assert await run_edits(lines, store.block, "ab") == [("othera", 3), ("otherab", 4)]


async def test_a_renamed_block_is_looked_up_again() -> None:
    store = Store()
    lines, seen = lines_of(store), store.block
    renamed = store.block = replace(store.block, label="other", version=2)
    answer = await asyncio.gather(run_edits(lines, seen, "a"), run_edits(lines, renamed, "b"))
    assert isinstance(answer[0][0], VersionConflict)
    assert answer[1] == [("b", 3)]


@pytest.mark.parametrize("size", [4_000_000])
async def test_large_values_are_stored_a_few_at_a_time(size: int) -> None:
    store = Store()
    store.block = replace(store.block, value="x" * size)
    await run_edits(lines_of(store), store.block, "abcde")
    assert (store.block.value[size:], store.changes) == ("abcde", [1, 1, 1, 1, 1])
