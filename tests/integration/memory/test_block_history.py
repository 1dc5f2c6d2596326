"""The history of a block on a real database: versions by number and time, differences, restoring, undo and redo."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as pb
from services.common.errors import Aborted, FailedPrecondition, InvalidArgument, NotFound
from tests.integration.memory.harness import Memory, fails
from tests.integration.memory.test_blocks import create, list_page, update
from tests.page_requests import paged


async def version(memory: Memory, block_id: str, **which: Any) -> block_pb2.BlockVersion:
    request = pb.GetBlockVersionRequest(key=pb.BlockKey(block_id=block_id), **which)
    return (await memory.blocks.GetBlockVersion(request)).version


async def restore(memory: Memory, block_id: str, **fields: Any) -> block_pb2.Block:
    request = pb.RestoreBlockRequest(key=pb.BlockKey(block_id=block_id), **fields)
    return (await memory.blocks.RestoreBlock(request)).block


async def undo(memory: Memory, block_id: str, expected: int | None = None) -> block_pb2.Block:
    request = pb.UndoBlockRequest(key=pb.BlockKey(block_id=block_id), expected_version=expected)
    return (await memory.blocks.UndoBlock(request)).block


async def redo(memory: Memory, block_id: str, expected: int | None = None) -> block_pb2.Block:
    request = pb.RedoBlockRequest(key=pb.BlockKey(block_id=block_id), expected_version=expected)
    return (await memory.blocks.RedoBlock(request)).block


async def test_versions_carry_all_that_history_keeps(memory: Memory) -> None:
    agent = await memory.agent_with(human="one")
    block = (await memory.read(agent))["human"]
    await memory.apply(agent, "core_memory_append", label="human", content="two", call_key="k")
    changed = await update(memory, block.id, label="person", limit=20, description="d", metadata_json='{"a":1}')
    newest, tool, first = await memory.history(block.id)
    assert (newest.label, newest.limit, newest.description, newest.metadata_json) == ("person", 20, "d", '{"a":1}')
    assert (newest.value, newest.created_at, newest.restored_version) == ("one\ntwo", changed.updated_at, 0)
    assert (tool.label, tool.limit, tool.call_key, tool.agent_id) == ("human", 100_000, "k", agent)
    assert not tool.HasField("description")
    assert [await version(memory, block.id, version=number) for number in (3, 2, 1)] == [newest, tool, first]
    key = pb.BlockKey(agent_label=pb.AgentLabel(agent_id=agent, label="person"))
    by_label = await memory.blocks.GetBlockVersion(pb.GetBlockVersionRequest(key=key, version=2))
    assert by_label.version == tool
    for missing in (0, 4, 2**62):
        with fails(NotFound, "BLOCK_VERSION_NOT_FOUND") as caught:
            await version(memory, block.id, version=missing)
        assert f"{block.id} has no version {missing}" in caught[0].message
    with fails(InvalidArgument, "BLOCK_INVALID"):
        await version(memory, block.id)
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await version(memory, f"block-{uuid4()}", version=1)
    with memory.of(uuid4()), fails(NotFound, "BLOCK_NOT_FOUND"):
        await version(memory, block.id, version=1)


async def test_a_value_as_of_a_time(memory: Memory) -> None:
    """Also of versions that were stored by one statement, whose times differ by a microsecond."""
    agent = await memory.agent_with(human="start")
    block_id = (await memory.read(agent))["human"].id
    appends = (memory.apply(agent, "core_memory_append", label="human", content=str(number)) for number in range(20))
    await asyncio.gather(*appends)
    history = await memory.history(block_id)
    assert len(history) == 21
    for one in history:
        assert await version(memory, block_id, as_of=one.created_at) == one
    first = history[-1]
    early = Timestamp()
    early.FromMicroseconds(first.created_at.ToMicroseconds() - 1)
    with fails(NotFound, "BLOCK_VERSION_NOT_FOUND") as caught:
        await version(memory, block_id, as_of=early)
    assert "did not exist at" in caught[0].message
    restored = await restore(memory, block_id, as_of=first.created_at)
    assert (restored.value, restored.version) == ("start", 22)
    assert restored.updated_at.ToMicroseconds() > history[0].created_at.ToMicroseconds()


async def test_differences(memory: Memory) -> None:
    block = await create(memory, value="one\ntwo")
    await update(memory, block.id, value="one\nthree\nfour")

    async def diff(first: int, last: int = 0) -> tuple[str, int, int]:
        key = pb.BlockKey(block_id=block.id)
        found = await memory.blocks.DiffBlockVersions(
            pb.DiffBlockVersionsRequest(key=key, from_version=first, to_version=last)
        )
        return found.diff, found.added_lines, found.removed_lines

    assert await diff(1) == await diff(1, 2) == ("@@ -1,2 +1,3 @@\n one\n-two\n+three\n+four", 2, 1)
    assert await diff(2, 2) == ("", 0, 0)
    with fails(NotFound, "BLOCK_VERSION_NOT_FOUND"):
        await diff(1, 3)


async def test_restoring_is_a_change_like_any_other(memory: Memory) -> None:
    block = await create(memory, value="a long value")
    await update(memory, block.id, value="b", limit=3, description="stays", read_only=True)
    with fails(Aborted, "BLOCK_VERSION_CONFLICT"):
        await restore(memory, block.id, version=1, expected_version=1)
    restored = await restore(memory, block.id, version=1, expected_version=2)
    assert (restored.value, restored.limit, restored.description, restored.version) == (
        "a long value", 100_000, "stays", 3,
    )  # fmt: skip
    assert await restore(memory, block.id, version=1) == restored
    newest = (await memory.history(block.id))[0]
    assert (newest.operation, newest.restored_version) == (block_pb2.BLOCK_OPERATION_RESTORE, 1)
    assert (newest.actor_id, newest.agent_id, newest.run_id) == (f"user-{memory.caller.user_id}", "", "")
    assert (await undo(memory, block.id)).value == "b"
    with fails(NotFound, "BLOCK_VERSION_NOT_FOUND"):
        await restore(memory, block.id, version=9)


async def test_undo_and_redo(memory: Memory) -> None:
    agent = await memory.agent_with(human="one")
    block_id = (await memory.read(agent))["human"].id
    with fails(FailedPrecondition, "BLOCK_NOTHING_TO_UNDO"):
        await undo(memory, block_id)
    await memory.apply(agent, "core_memory_append", label="human", content="two")
    await memory.apply(agent, "core_memory_append", label="human", content="three")
    assert (await undo(memory, block_id, expected=3)).value == "one\ntwo"
    with fails(Aborted, "BLOCK_VERSION_CONFLICT"):
        await undo(memory, block_id, expected=3)
    assert (await undo(memory, block_id)).value == "one"
    await update(memory, block_id, description="nothing to undo")
    with fails(FailedPrecondition, "BLOCK_NOTHING_TO_UNDO"):
        await undo(memory, block_id)
    assert (await redo(memory, block_id)).value == "one\ntwo"
    again = await redo(memory, block_id, expected=7)
    assert (again.value, again.version) == ("one\ntwo\nthree", 8)
    with fails(FailedPrecondition, "BLOCK_NOTHING_TO_REDO"):
        await redo(memory, block_id)
    assert [
        (block_pb2.BlockOperation.Name(one.operation)[16:], one.restored_version)
        for one in await memory.history(block_id)
    ] == [("REDO", 3), ("REDO", 2), ("SET", 0), ("UNDO", 1), ("UNDO", 2), ("APPEND", 0), ("APPEND", 0), ("CREATE", 0)]
    await undo(memory, block_id)
    await memory.apply(agent, "core_memory_append", label="human", content="other")
    with fails(FailedPrecondition, "BLOCK_NOTHING_TO_REDO"):
        await redo(memory, block_id)


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_store_keeps_an_editors_stack(memory: Memory, seed: int) -> None:
    """Any series, against two stacks; tool edits, the API's, restorations and new descriptions among them."""
    chance, block = random.Random(seed), await create(memory, value="0")
    agent = await memory.agent_with()
    await memory.blocks.AttachBlock(pb.AttachBlockRequest(agent_id=agent, block_id=block.id))
    done, taken_back = ["0"], list[str]()
    for number in range(1, 80):
        match chance.choice("etdruuuyyy"):
            case "e":
                done.append(str(number))
                await update(memory, block.id, value=done[-1])
                taken_back.clear()
            case "t":
                done.append(f"{done[-1]}\n{number}")
                await memory.apply(agent, "core_memory_append", label="human", content=str(number))
                taken_back.clear()
            case "d":
                await update(memory, block.id, description=str(number))
            case "r":
                if (await restore(memory, block.id, version=1)).value != done[-1]:
                    done.append("0")
                    taken_back.clear()
            case "u" if len(done) > 1:
                taken_back.append(done.pop())
                assert (await undo(memory, block.id)).value == done[-1]
            case "y" if taken_back:
                done.append(taken_back.pop())
                assert (await redo(memory, block.id)).value == done[-1]
    assert (await version(memory, block.id, version=1)).value == "0"
    assert await memory.value(agent, "human") == done[-1]


async def rows_read(memory: Memory) -> int:
    """Rows of the history, and entries of its indexes, that were read so far."""
    async with AsyncExitStack() as held:
        every = [await held.enter_async_context(memory.pool.acquire()) for _ in range(memory.pool.get_size())]
        for connection in every:
            await connection.execute("SELECT pg_stat_force_next_flush()")
        read: int = await every[0].fetchval(
            "SELECT t.seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)"
            " FROM pg_stat_user_tables t WHERE t.relid = 'memory.block_history'::regclass"
        )
        return read


async def test_a_long_history_is_read_in_few_rows(memory: Memory) -> None:
    """A hundred thousand versions, most of which leave the value as it was."""
    block = await create(memory, value="first")
    await update(memory, block.id, value="second")
    tenant, block_id = memory.caller.organization_id, UUID(block.id.removeprefix("block-"))
    await memory.pool.execute(
        "INSERT INTO memory.block_history (organization_id, block_id, version, label, value, char_limit, metadata,"
        " operation, actor_id, created_at) SELECT $1, $2, number, 'human', CASE WHEN number < 50000 THEN 'second'"
        " ELSE 'v' || number END, 9, '{}', 2, $2, now() + number * interval '1 microsecond'"
        " FROM generate_series(3, 100000) AS number",
        tenant,
        block_id,
    )
    await memory.pool.execute(
        "UPDATE memory.blocks SET version = 100000, value = 'v100000' WHERE organization_id = $1 AND id = $2",
        tenant,
        block_id,
    )
    await memory.pool.execute("VACUUM ANALYZE memory.block_history")
    before = await rows_read(memory)
    assert (await undo(memory, block.id)).value == "v99999"
    assert (await version(memory, block.id, as_of=(await version(memory, block.id, version=70_000)).created_at)).version
    request = pb.ListBlockVersionsRequest(
        block_id=block.id, page=PageRequest(page_size=2, after="70000", before="70009", order=ORDER_ASCENDING)
    )
    page = await memory.blocks.ListBlockVersions(request)
    assert [one.version for one in page.versions] == [70_001, 70_002]
    assert await rows_read(memory) - before < 200
    await restore(memory, block.id, version=49_999)
    assert (await undo(memory, block.id)).value == "v99999"


async def test_versions_page_both_ways(memory: Memory) -> None:
    block = await create(memory, value="1")
    for number in range(2, 8):
        await update(memory, block.id, value=str(number))

    async def pages(**fields: Any) -> list[list[int]]:
        request, found = pb.ListBlockVersionsRequest(**paged(block_id=block.id, page_size=2, **fields)), []
        while True:
            page = await memory.blocks.ListBlockVersions(request)
            found.append([one.version for one in page.versions])
            request.page.page_token = page.next_page_token
            if not request.page.page_token:
                return found

    assert await pages() == [[7, 6], [5, 4], [3, 2], [1]]
    assert await pages(ascending=True, after="3") == [[4, 5], [6, 7]]
    assert await pages(after="6", before="2") == [[5, 4], [3]]
    assert await pages(before="4") == [[6, 5], [7]]
    assert await pages(ascending=True, before="4") == [[2, 3], [1]]
    assert await pages(after="1") == [[]]
    with fails(InvalidArgument, "PAGE_TOKEN_INVALID"):
        await pages(page_token="x")
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await memory.blocks.ListBlockVersions(
            pb.ListBlockVersionsRequest(block_id=f"block-{uuid4()}", page=PageRequest(after="1"))
        )


async def test_undo_among_edits_loses_none(memory: Memory) -> None:
    agent = await memory.agent_with(human="start")
    block_id = (await memory.read(agent))["human"].id

    async def back_and_forth() -> None:
        for _ in range(5):
            await undo(memory, block_id)

    await memory.apply(agent, "core_memory_append", label="human", content="first")
    await asyncio.gather(
        back_and_forth(),
        *(memory.apply(agent, "core_memory_append", label="human", content=str(number)) for number in range(30)),
        return_exceptions=True,
    )
    history = (await memory.history(block_id))[::-1]
    assert [one.version for one in history] == list(range(1, len(history) + 1))
    appended = [one for one in history if one.operation == block_pb2.BLOCK_OPERATION_APPEND]
    assert len(appended) == 31
    for before, after in pairwise(history):
        if after.operation == block_pb2.BLOCK_OPERATION_APPEND:
            assert after.value.startswith(f"{before.value}\n")
        else:
            assert after.value == history[after.restored_version - 1].value


async def test_lists_by_tags_templates_and_agents(memory: Memory) -> None:
    await create(memory, value="none", tags=["x"], template_name="t", project_id="p")
    agents = [await memory.agent_with() for _ in range(3)]
    for number, tags in ((1, ["x", "y"]), (2, ["y"]), (3, ["z"])):
        block = await create(memory, value=str(number), label=f"l{number}", tags=tags, template_name="u")
        for agent in agents[:number]:
            await memory.blocks.AttachBlock(pb.AttachBlockRequest(agent_id=agent, block_id=block.id))
    assert await list_page(memory, tags=["x", "y"], match_any_tag=True) == ["none", "1", "2"]
    assert await list_page(memory, tags=["x", "y"]) == ["1"]
    assert await list_page(memory, template_name="t", project_id="p") == ["none"]
    assert await list_page(memory, template_name="t", project_id="q") == []
    assert await list_page(memory, more_agents_than=1) == ["2", "3"]
    assert await list_page(memory, fewer_agents_than=2, page_size=1) == ["none", "1"]
    assert await list_page(memory, more_agents_than=0, fewer_agents_than=3, tags=["y"]) == ["1", "2"]
    assert await list_page(memory, agent_counts=[0, 3]) == ["none", "3"]
    assert await list_page(memory, agent_id=agents[1], agent_counts=[2]) == ["2"]
    await create(memory, hidden=True)
    assert (await memory.blocks.CountBlocks(pb.CountBlocksRequest())).blocks == 5
