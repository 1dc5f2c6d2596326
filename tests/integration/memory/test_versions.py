"""Journeys through versions: blocks set back, copied as they were, archives shared; each once per request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from uuid import uuid4

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import agent_memory_service_pb2 as pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from tests.integration.memory.harness import Memory, fails

RUN = f"run-{uuid4()}"


async def append(memory: Memory, agent: str, label: str, *lines: str, conversation_id: str = "") -> None:
    for line in lines:
        told = await memory.apply(
            agent, "core_memory_append", label=label, content=line, conversation_id=conversation_id
        )
        assert not told.is_error


async def restore(
    memory: Memory, agent: str, versions: Mapping[str, int], *, request_id: str = "", conversation_id: str = ""
) -> pb.RestoreBlocksResponse:
    return await memory.agents.RestoreBlocks(
        pb.RestoreBlocksRequest(
            agent_id=agent,
            conversation_id=conversation_id,
            versions=versions,
            request_id=request_id or f"restore-{uuid4()}",
            run_id=RUN,
        )
    )


async def copy(
    memory: Memory,
    source: str,
    target: str,
    versions: Mapping[str, int],
    *,
    request_id: str = "",
    conversation: str = "",
) -> list[block_pb2.Block]:
    request = pb.CopyBlocksRequest(
        source_agent_id=source,
        source_conversation_id=conversation,
        target_agent_id=target,
        versions=versions,
        request_id=request_id or f"copy-{uuid4()}",
    )
    return list((await memory.agents.CopyBlocks(request)).blocks)


async def update(memory: Memory, block_id: str, **fields: object) -> None:
    draft = block_pb2.Block(**fields)  # type: ignore[arg-type]
    request = block_pb.UpdateBlockRequest(key=block_pb.BlockKey(block_id=block_id), block=draft)
    request.update_mask.paths.extend(fields)
    await memory.blocks.UpdateBlock(request)


async def test_every_version_of_every_kind_has_its_value_in_history(memory: Memory) -> None:
    agent = await memory.agent_with(human="one")
    block = (await memory.read(agent))["human"]
    await append(memory, agent, "human", "two")
    await update(memory, block.id, value="three", limit=10)
    await update(memory, block.id, description="only this")
    history = await memory.history(block.id)
    assert [(one.version, one.value) for one in history] == [(4, "three"), (3, "three"), (2, "one\ntwo"), (1, "one")]


async def test_blocks_are_set_back_as_new_versions(memory: Memory) -> None:
    agent = await memory.agent_with(human="h", notes="n", same="s")
    await append(memory, agent, "human", "2", "3")
    await append(memory, agent, "notes", "2")
    now = await memory.read(agent)
    answer = await restore(memory, agent, {now["human"].id: 2, now["notes"].id: 1, now["same"].id: 1}, request_id="r")
    restored = await memory.read(agent)
    assert {label: (block.value, block.version) for label, block in restored.items()} == {
        "human": ("h\n2", 4),
        "notes": ("n", 3),
        "same": ("s", 1),
    }
    assert sorted(block.id for block in answer.blocks) == sorted(block.id for block in restored.values())
    assert {block.id: block for block in answer.blocks}[now["human"].id] == restored["human"]
    assert answer.missing_block_ids == []
    newest, *older = await memory.history(now["human"].id)
    assert [one.value for one in older] == ["h\n2\n3", "h\n2", "h"]
    assert (newest.value, newest.version) == ("h\n2", 4)
    assert (newest.operation, newest.restored_version) == (block_pb2.BLOCK_OPERATION_RESTORE, 2)
    assert (newest.agent_id, newest.run_id, newest.call_key) == (agent, RUN, "r")


async def test_a_repeated_restoration_changes_nothing(memory: Memory) -> None:
    agent, gone = await memory.agent_with(human="h"), f"block-{uuid4()}"
    await append(memory, agent, "human", "2")
    block = (await memory.read(agent))["human"]
    first = await restore(memory, agent, {block.id: 1, gone: 3}, request_id="r")
    assert list(first.missing_block_ids) == [gone]
    await append(memory, agent, "human", "after")
    again = await restore(memory, agent, {block.id: 1, gone: 3}, request_id="r")
    assert (again.blocks[0].value, list(again.missing_block_ids)) == ("h\nafter", [gone])
    assert await memory.value(agent, "human") == "h\nafter"
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await restore(memory, agent, {block.id: 2}, request_id="r")
    with fails(InvalidArgument, "CALL_KEY_INVALID"):
        await restore(memory, agent, {block.id: 2}, request_id="x" * 201)


async def test_what_others_own_is_missing_and_stays(memory: Memory) -> None:
    agent, other = await memory.agent_with(human="h", left="l"), await memory.agent_with(human="o")
    await append(memory, other, "human", "2")
    foreign, left = (await memory.read(other))["human"], (await memory.read(agent))["left"]
    await memory.blocks.DetachBlock(block_pb.DetachBlockRequest(agent_id=agent, block_id=left.id))
    answer = await restore(memory, agent, {foreign.id: 1, left.id: 1})
    assert sorted(answer.missing_block_ids) == sorted([foreign.id, left.id])
    assert await memory.value(other, "human") == "o\n2"


async def test_an_unknown_version_restores_nothing(memory: Memory) -> None:
    agent = await memory.agent_with(human="h", notes="n")
    await append(memory, agent, "human", "2")
    blocks = await memory.read(agent)
    versions = {blocks["human"].id: 1, blocks["notes"].id: 9}
    for _ in range(2):
        with fails(NotFound, "BLOCK_VERSION_NOT_FOUND") as caught:
            await restore(memory, agent, versions, request_id="r")
        assert f"{blocks['notes'].id} has no version 9" in caught[0].message
    assert await memory.value(agent, "human") == "h\n2"


async def test_a_longer_value_brings_back_its_limit_and_read_only_does_not_count(memory: Memory) -> None:
    agent = await memory.agent_with(human="long enough")
    block = (await memory.read(agent))["human"]
    await update(memory, block.id, value="short", limit=5, read_only=True)
    [restored] = (await restore(memory, agent, {block.id: 1})).blocks
    assert (restored.value, restored.limit, restored.read_only) == ("long enough", 100_000, True)


async def test_a_conversations_copies_are_restored_for_it_alone(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h"), f"conv-{uuid4()}"
    [isolated] = await memory.isolate(agent, own, "human")
    await append(memory, agent, "human", "mine", conversation_id=own)
    await append(memory, agent, "human", "all's")
    original = (await memory.read(agent))["human"]
    assert list((await restore(memory, agent, {isolated.id: 1})).missing_block_ids) == [isolated.id]
    answer = await restore(memory, agent, {isolated.id: 1, original.id: 1}, conversation_id=own)
    assert {block.value for block in answer.blocks} == {"h"}
    assert (await memory.read(agent, own))["human"].value == await memory.value(agent, "human") == "h"


async def test_who_else_sees_what_was_restored_is_told(memory: Memory) -> None:
    agent, other = await memory.agent_with(human="h", notes="n"), await memory.agent_with()
    blocks = await memory.read(agent)
    shared = block_pb.AttachBlockRequest(agent_id=other, block_id=blocks["notes"].id)
    await memory.blocks.AttachBlock(shared)
    answer = await restore(memory, agent, {block.id: 1 for block in blocks.values()})
    assert list(answer.shared_block_ids) == [blocks["notes"].id]


async def test_copies_of_a_conversation_may_be_as_they_were(memory: Memory) -> None:
    agent, first, second = await memory.agent_with(human="h", notes="n"), f"conv-{uuid4()}", f"conv-{uuid4()}"
    await append(memory, agent, "human", "2", "3")
    human = (await memory.read(agent))["human"]
    await update(memory, human.id, label="person")

    async def isolate(conversation: str, versions: Mapping[str, int], source: str = "") -> list[block_pb2.Block]:
        request = pb.IsolateBlocksRequest(
            agent_id=agent,
            conversation_id=conversation,
            labels=["person", "notes"],
            source_conversation_id=source,
            versions=versions,
        )
        return list((await memory.agents.IsolateBlocks(request)).blocks)

    # Under its label of today; what is not named is as it is.
    with fails(NotFound, "BLOCK_VERSION_NOT_FOUND"):
        await isolate(first, {human.id: 9})
    copies = await isolate(first, {human.id: 2})
    assert [(copy.label, copy.value, copy.version) for copy in copies] == [("person", "h\n2", 1), ("notes", "n", 1)]
    await append(memory, agent, "person", "mine", conversation_id=first)
    assert [copy.value for copy in await isolate(second, {copies[0].id: 1}, source=first)] == ["h\n2", "n"]


async def test_what_runs_made_is_listed(memory: Memory) -> None:
    agent = await memory.agent_with(human="h")
    block_id = (await memory.read(agent))["human"].id
    runs, steps = [f"run-{uuid4()}" for _ in range(2)], [f"step-{uuid4()}" for _ in range(3)]
    for number, (run, step) in enumerate(zip((*runs, runs[0]), steps, strict=True)):
        request = pb.ApplyToolRequest(
            call_key=f"call-{uuid4()}",
            agent_id=agent,
            run_id=run,
            step_id=step,
            tool_name="core_memory_append",
            arguments_json=f'{{"label": "human", "content": "{number}"}}',
        )
        await memory.agents.ApplyTool(request)
    await restore(memory, agent, {block_id: 1})

    async def created(*run_ids: str) -> list[tuple[str, int, str, str]]:
        edits = (await memory.agents.ListBlockEdits(pb.ListBlockEditsRequest(run_ids=run_ids))).edits
        return [(edit.block_id, edit.version, edit.run_id, edit.step_id) for edit in edits]

    assert await created(runs[0]) == [(block_id, 2, runs[0], steps[0]), (block_id, 4, runs[0], steps[2])]
    assert await created(*runs, RUN) == [
        *(
            (block_id, version, run, step)
            for version, run, step in zip((2, 3, 4), (*runs, runs[0]), steps, strict=True)
        ),
        (block_id, 5, RUN, ""),
    ]
    with memory.of(uuid4()):
        assert await created(*runs) == []
    for run_ids in ([], ["run-x"], runs * 501):
        with fails(InvalidArgument):
            await memory.agents.ListBlockEdits(pb.ListBlockEditsRequest(run_ids=run_ids))


async def test_restorations_and_edits_at_once_lose_nothing(memory: Memory) -> None:
    agent = await memory.agent_with(human="h", notes="n")
    blocks = await memory.read(agent)
    versions = {block.id: 1 for block in blocks.values()}
    backwards = dict(reversed(versions.items()))
    await asyncio.gather(
        *(restore(memory, agent, versions, request_id="same") for _ in range(6)),
        *(restore(memory, agent, backwards) for _ in range(6)),
        *(append(memory, agent, label, f"{number}") for number in range(10) for label in ("human", "notes")),
    )
    for block in blocks.values():
        history = await memory.history(block.id)
        appended = [one for one in history if one.operation == block_pb2.BLOCK_OPERATION_APPEND]
        assert (len(appended), [one.version for one in history]) == (10, list(range(len(history), 0, -1)))


async def test_a_copy_is_made_from_versions_and_lives_alone(memory: Memory) -> None:
    source, target = await memory.agent_with(human="h", notes="n"), f"agent-{uuid4()}"
    await append(memory, source, "human", "2", "3")
    await append(memory, source, "notes", "2")
    blocks = await memory.read(source)
    created = await copy(memory, source, target, {blocks["human"].id: 2}, request_id="c")
    assert [(block.label, block.value, block.version) for block in created] == [
        ("human", "h\n2", 1),
        ("notes", "n\n2", 1),
    ]
    assert list((await memory.read(target)).values()) == created
    [first] = await memory.history(created[0].id)
    assert (first.operation, first.value) == (block_pb2.BLOCK_OPERATION_CREATE, "h\n2")
    assert (first.agent_id, first.call_key) == (target, "c")
    await append(memory, target, "human", "own")
    assert await memory.value(source, "human") == "h\n2\n3"


async def test_a_copy_has_the_labels_and_limits_of_then_and_what_is_detached_now(memory: Memory) -> None:
    source, target = await memory.agent_with(human="h", left="l"), f"agent-{uuid4()}"
    blocks = await memory.read(source)
    await update(memory, blocks["human"].id, label="person", limit=9)
    await memory.blocks.DetachBlock(block_pb.DetachBlockRequest(agent_id=source, block_id=blocks["left"].id))
    versions = {block.id: 1 for block in blocks.values()} | {f"block-{uuid4()}": 5}
    created = await copy(memory, source, target, versions)
    assert [(block.label, block.limit) for block in created] == [("human", 100_000), ("left", 100_000)]


async def test_a_repeated_copy_makes_nothing(memory: Memory) -> None:
    source, target = await memory.agent_with(human="h"), f"agent-{uuid4()}"
    created = await copy(memory, source, target, {}, request_id="c")
    await append(memory, source, "human", "2")
    await memory.blocks.CreateBlock(block_pb.CreateBlockRequest(block=block_pb2.Block(label="x")))
    again = await asyncio.gather(*(copy(memory, source, target, {}, request_id="c") for _ in range(5)))
    assert again == [created] * 5
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await copy(memory, source, f"agent-{uuid4()}", {}, request_id="c")
    fresh = f"agent-{uuid4()}"
    many = await asyncio.gather(*(copy(memory, source, fresh, {}, request_id="many") for _ in range(8)))
    assert len({block.id for blocks in many for block in blocks}) == 1


async def test_a_copy_that_cannot_be_whole_is_not_made(memory: Memory) -> None:
    source, target = await memory.agent_with(notes="n", human="h"), await memory.agent_with(human="mine")
    with fails(AlreadyExists, "BLOCK_LABEL_TAKEN"):
        await copy(memory, source, target, {}, request_id="c")
    with fails(NotFound, "BLOCK_VERSION_NOT_FOUND"):
        await copy(memory, source, target, {(await memory.read(source))["human"].id: 4})
    assert list(await memory.read(target)) == ["human"]
    assert await copy(memory, f"agent-{uuid4()}", target, {}) == []


async def test_a_conversations_copies_are_what_is_copied(memory: Memory) -> None:
    source, own, target = await memory.agent_with(human="h", notes="n"), f"conv-{uuid4()}", f"agent-{uuid4()}"
    await memory.isolate(source, own, "notes")
    await append(memory, source, "notes", "mine", conversation_id=own)
    created = await copy(memory, source, target, {}, conversation=own)
    assert [block.value for block in created] == ["h", "n\nmine"]


@pytest.mark.parametrize("erase", [False, True])
async def test_copies_go_with_an_agent_that_never_came_to_be(memory: Memory, erase: bool) -> None:
    source, target = await memory.agent_with(human="h"), f"agent-{uuid4()}"
    [created] = await copy(memory, source, target, {})
    await memory.agents.PurgeAgent(pb.PurgeAgentRequest(agent_id=target, erase_blocks=erase))
    list_page = await memory.blocks.ListBlocks(block_pb.ListBlocksRequest(page=PageRequest(page_size=100)))
    assert (created.id in {block.id for block in list_page.blocks}) is not erase


async def test_shared_archives_are_the_same_passages(memory: Memory) -> None:
    source, target = await memory.agent_with(), f"agent-{uuid4()}"
    share = pb.ShareArchivesRequest(source_agent_id=source, target_agent_id=target)
    await memory.agents.ShareArchives(share)
    await memory.store(source, "Tom is a kitten.")
    shared = [await memory.agents.ShareArchives(share) for _ in range(2)]
    assert [len(answer.archive_ids) for answer in shared] == [1, 1]
    [hit] = await memory.search(target, "cat")
    assert hit.passage.text == "Tom is a kitten."
    await memory.store(source, "Rex is a dog.")
    await memory.apply(target, "archival_memory_insert", content="A car of its own.")
    assert {hit.passage.text for hit in await memory.search(target, "cat dog car")} == {
        "Tom is a kitten.",
        "Rex is a dog.",
        "A car of its own.",
    }
    assert len(await memory.search(source, "cat dog car")) == 2
    await memory.agents.PurgeAgent(pb.PurgeAgentRequest(agent_id=source))
    assert len(await memory.search(target, "cat dog car")) == 3
