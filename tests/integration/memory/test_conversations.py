"""Conversations with blocks of their own: copied once, edited apart, erased with the conversation."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from loci.memory.v1 import agent_memory_service_pb2 as pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from tests.integration.memory.harness import Memory, fails


def conversation() -> str:
    return f"conv-{uuid4()}"


async def by_id(memory: Memory, block_id: str) -> block_pb2.Block:
    key = block_pb.BlockKey(block_id=block_id)
    return (await memory.blocks.GetBlock(block_pb.GetBlockRequest(key=key))).block


async def purge(memory: Memory, agent: str, conversation_id: str) -> None:
    await memory.agents.PurgeConversation(pb.PurgeConversationRequest(agent_id=agent, conversation_id=conversation_id))


def content(block: block_pb2.Block) -> tuple[object, ...]:
    return (
        block.label, block.value, block.limit, block.description, block.read_only, block.metadata_json, list(block.tags)
    )  # fmt: skip


async def test_a_copy_has_the_blocks_content_and_its_own_life(memory: Memory) -> None:
    agent, own = f"agent-{uuid4()}", conversation()
    draft = block_pb2.Block(
        id=f"block-{uuid4()}", label="notes", value="n", limit=50, description="d", metadata_json='{"a":1}', tags=["t"]
    )
    other = block_pb2.Block(id=f"block-{uuid4()}", label="human", value="h")
    await memory.agents.CreateAgentMemory(pb.CreateAgentMemoryRequest(agent_id=agent, blocks=[draft, other]))
    [copy] = await memory.isolate(agent, own, "notes")
    original = (await memory.read(agent))["notes"]
    assert content(copy) == content(original)
    assert (copy.version, copy.id != original.id) == (1, True)
    await memory.apply(agent, "core_memory_append", label="notes", content="mine", conversation_id=own)
    await memory.apply(agent, "core_memory_append", label="human", content="all's", conversation_id=own)
    await memory.apply(agent, "core_memory_append", label="notes", content="theirs")
    seen, elsewhere = await memory.read(agent, own), await memory.read(agent)
    assert {label: block.value for label, block in seen.items()} == {"notes": "n\nmine", "human": "h\nall's"}
    assert {label: block.value for label, block in elsewhere.items()} == {"notes": "n\ntheirs", "human": "h\nall's"}
    assert await memory.read(agent, conversation()) == elsewhere
    assert [version.value for version in await memory.history(copy.id)] == ["n\nmine", "n"]


async def test_the_memory_names_the_copies_and_keeps_the_order(memory: Memory) -> None:
    agent, own = await memory.agent_with(zeta="z", human="h", alpha="a"), conversation()
    copies = await memory.isolate(agent, own, "alpha", "zeta")
    assert [copy.label for copy in copies] == ["alpha", "zeta"]
    request = pb.GetAgentMemoryRequest(agent_id=agent, conversation_id=own)
    memory.counter.reset()
    found = (await memory.agents.GetAgentMemory(request)).memory
    assert await memory.statement_counts() == (1, 1)
    assert [block.label for block in found.blocks] == ["zeta", "human", "alpha"]
    assert set(found.isolated_block_ids) == {copy.id for copy in copies}
    request.ClearField("conversation_id")
    assert (await memory.agents.GetAgentMemory(request)).memory.isolated_block_ids == []


async def test_isolating_again_changes_nothing_and_adds_what_is_missing(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h", notes="n"), conversation()
    [human] = await memory.isolate(agent, own, "human", "human")
    await memory.apply(agent, "core_memory_append", label="human", content="x", conversation_id=own)
    again, notes = await memory.isolate(agent, own, "human", "notes")
    assert (again.id, again.value, notes.value) == (human.id, "h\nx", "n")
    assert await memory.isolate(agent, own) == []


async def test_an_unknown_label_copies_nothing(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h"), conversation()
    with fails(NotFound, "BLOCK_NOT_FOUND") as caught:
        await memory.isolate(agent, own, "human", "nobody")
    assert "'nobody'" in caught[0].message
    request = pb.GetAgentMemoryRequest(agent_id=agent, conversation_id=own)
    assert (await memory.agents.GetAgentMemory(request)).memory.isolated_block_ids == []
    with fails(InvalidArgument, "INVALID_ID"):
        await memory.isolate(agent, "", "human")
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await memory.isolate(f"agent-{uuid4()}", own, "human")


async def test_a_fork_copies_the_copies_of_its_source(memory: Memory) -> None:
    agent, source, fork = await memory.agent_with(human="h", notes="n"), conversation(), conversation()
    await memory.isolate(agent, source, "human")
    await memory.apply(agent, "core_memory_append", label="human", content="x", conversation_id=source)
    human, notes = await memory.isolate(agent, fork, "human", "notes", source=source)
    assert (human.value, notes.value) == ("h\nx", "n")
    assert human.id != (await memory.read(agent, source))["human"].id


async def test_a_copy_is_no_block_of_the_agent_but_can_be_edited_by_its_id(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h"), conversation()
    [copy] = await memory.isolate(agent, own, "human")
    list_page = await memory.blocks.ListBlocks(block_pb.ListBlocksRequest(agent_id=agent))
    assert copy.id not in {block.id for block in list_page.blocks}
    agents = await memory.blocks.ListBlockAgents(block_pb.ListBlockAgentsRequest(block_id=copy.id))
    assert list(agents.agent_ids) == []
    update = block_pb.UpdateBlockRequest(key=block_pb.BlockKey(block_id=copy.id), block=block_pb2.Block(value="new"))
    update.update_mask.paths.append("value")
    await memory.blocks.UpdateBlock(update)
    assert (await memory.read(agent, own))["human"].value == "new"
    assert await memory.value(agent, "human") == "h"


async def test_a_renamed_copy_follows_its_label(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h", notes="n"), conversation()
    human, _ = await memory.isolate(agent, own, "human", "notes")
    update = block_pb.UpdateBlockRequest(key=block_pb.BlockKey(block_id=human.id))
    update.update_mask.paths.append("label")
    update.block.label = "notes"
    with fails(AlreadyExists, "BLOCK_LABEL_TAKEN"):
        await memory.blocks.UpdateBlock(update)
    update.block.label = "other"
    await memory.blocks.UpdateBlock(update)
    assert (await memory.read(agent, own))["human"].id != human.id


@pytest.mark.parametrize("of_agent", [False, True])
async def test_purging_erases_the_copies_of_this_owner_alone(memory: Memory, of_agent: bool) -> None:
    agent, other = await memory.agent_with(human="h"), await memory.agent_with(human="o")
    own, second, others = conversation(), conversation(), conversation()
    [first] = await memory.isolate(agent, own, "human")
    [kept] = await memory.isolate(agent, second, "human")
    [foreign] = await memory.isolate(other, others, "human")
    original = (await memory.read(agent))["human"]
    for _ in range(2):
        if of_agent:
            await memory.agents.PurgeAgent(pb.PurgeAgentRequest(agent_id=agent))
        else:
            await purge(memory, agent, own)
            await purge(memory, agent, others)
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await by_id(memory, first.id)
    if of_agent:
        with fails(NotFound, "BLOCK_NOT_FOUND"):
            await by_id(memory, kept.id)
    else:
        assert await memory.read(agent, own) == {"human": original}
        assert (await memory.read(agent, second))["human"] == kept
    assert await by_id(memory, original.id) == original
    assert (await memory.read(other, others))["human"] == foreign


async def test_a_copy_that_was_attached_by_hand_outlives_its_conversation(memory: Memory) -> None:
    agent, reader, own = await memory.agent_with(human="h"), await memory.agent_with(), conversation()
    [copy] = await memory.isolate(agent, own, "human")
    await memory.blocks.AttachBlock(block_pb.AttachBlockRequest(agent_id=reader, block_id=copy.id))
    await purge(memory, agent, own)
    assert (await memory.read(reader))["human"] == copy
    assert (await memory.read(agent, own))["human"].id != copy.id


async def test_two_who_isolate_at_once_make_one_copy(memory: Memory) -> None:
    agent, own = await memory.agent_with(human="h", notes="n"), conversation()
    created = await asyncio.gather(
        *(memory.isolate(agent, own, *labels) for labels in (["human", "notes"], ["notes"]) * 8)
    )
    assert len({block.id for blocks in created for block in blocks}) == 2
    count = "SELECT count(*) FROM memory.blocks WHERE organization_id = $1"
    assert await memory.pool.fetchval(count, memory.caller.organization_id) == 4


async def test_conversations_edit_their_copies_at_once_and_share_the_rest(memory: Memory) -> None:
    agent = await memory.agent_with(plan="start", shared="start")
    owners = [conversation() for _ in range(4)]
    for own in owners:
        await memory.isolate(agent, own, "plan")

    async def edit(own: str, label: str, number: int) -> None:
        answer = await memory.apply(
            agent, "core_memory_append", label=label, content=f"{own} {number}", conversation_id=own
        )
        assert not answer.is_error

    memory.counter.reset()
    await edit(owners[0], "plan", 0)
    assert await memory.statement_counts() == (2, 2)
    await asyncio.gather(
        *(edit(own, label, number) for own in owners for label in ("plan", "shared") for number in range(1, 11))
    )
    for own in owners:
        lines = (await memory.read(agent, own))["plan"].value.split("\n")
        assert set(lines[1:]) == {f"{own} {number}" for number in range(own != owners[0], 11)}
        assert len(lines) == len(set(lines))
    shared = (await memory.value(agent, "shared")).split("\n")
    assert len(shared) == len(set(shared)) == 41
    assert await memory.value(agent, "plan") == "start"
