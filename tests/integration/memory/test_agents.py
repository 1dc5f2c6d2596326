"""An agent's memory as a whole: made with the agent, read at every turn, purged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import agent_memory_service_pb2 as pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from tests.integration.memory.harness import EMBEDDING, Memory, fails


async def get(memory: Memory, agent_id: str) -> pb.AgentMemory:
    return (await memory.agents.GetAgentMemory(pb.GetAgentMemoryRequest(agent_id=agent_id))).memory


async def create(memory: Memory, agent_id: str, *drafts: block_pb2.Block, ids: Any = ()) -> pb.AgentMemory:
    request = pb.CreateAgentMemoryRequest(agent_id=agent_id, blocks=drafts, block_ids=ids)
    return (await memory.agents.CreateAgentMemory(request)).memory


def draft(label: str, value: str = "", **fields: Any) -> block_pb2.Block:
    return block_pb2.Block(id=f"block-{uuid4()}", label=label, value=value, **fields)


async def exists(memory: Memory, block_id: str) -> bool:
    request = block_pb.ListBlocksRequest(show_hidden=True, page=PageRequest(page_size=1_000))
    return block_id in {block.id for block in (await memory.blocks.ListBlocks(request)).blocks}


async def test_an_unknown_agent_has_an_empty_memory(memory: Memory) -> None:
    agent = f"agent-{uuid4()}"
    assert await get(memory, agent) == pb.AgentMemory(agent_id=agent)


async def test_blocks_are_created_in_order_and_repeating_is_harmless(memory: Memory) -> None:
    shared = (await memory.blocks.CreateBlock(block_pb.CreateBlockRequest(block=draft("shared", "s")))).block
    agent, drafts = f"agent-{uuid4()}", [draft("zeta", "z"), draft("alpha", "a", read_only=True)]
    created = await create(memory, agent, *drafts, ids=[shared.id])
    assert [block.label for block in created.blocks] == ["shared", "zeta", "alpha"]
    assert await get(memory, agent) == created
    await memory.apply(agent, "core_memory_append", label="zeta", content="more")
    again = await create(memory, agent, *drafts, ids=[shared.id])
    assert [block.value for block in again.blocks] == ["s", "z\nmore", "a"]
    assert await create(memory, f"agent-{uuid4()}") != created


async def test_creation_is_all_or_nothing(memory: Memory) -> None:
    agent, first = f"agent-{uuid4()}", draft("human")
    with fails(AlreadyExists, "BLOCK_LABEL_TAKEN"):
        await create(memory, agent, first, draft("human"))
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await create(memory, agent, first, ids=[f"block-{uuid4()}"])
    with fails(InvalidArgument, "BLOCK_OVER_LIMIT"):
        await create(memory, agent, first, draft("persona", "xx", limit=1))
    with fails(InvalidArgument, "INVALID_ID"):
        await create(memory, agent, first, block_pb2.Block(label="persona"))
    assert not await exists(memory, first.id)
    await create(memory, f"agent-{uuid4()}", first)
    with fails(AlreadyExists, "BLOCK_ID_TAKEN"):
        await create(memory, agent, block_pb2.Block(id=first.id, label="other"))


async def test_archives_counts_and_tags_stand_in_the_memory(memory: Memory) -> None:
    agent = await memory.agent_with(human="h", persona="p")
    for number in range(120):
        tags = [f"t{number:03}", "all"]
        await memory.apply(agent, "archival_memory_insert", content=f"text {number}", tags=tags)
    found = await get(memory, agent)
    assert found.passage_count == 120
    assert list(found.passage_tags) == ["all", *(f"t{number:03}" for number in range(99))]
    [archive] = found.archives
    assert (archive.embedding, archive.dimensions, archive.name) == (EMBEDDING, 6, f"Archive of {agent}")
    [hit] = await memory.search(agent, "text 7", top_k=1)
    await memory.passages.DeletePassage(passage_pb.DeletePassageRequest(agent_id=agent, passage_id=hit.passage.id))
    assert (await get(memory, agent)).passage_count == 119
    other = f"agent-{uuid4()}"
    stored = passage_pb.CreatePassagesRequest(
        agent_id=other, agent_name="Ada", passages=[passage_pb.PassageDraft(text="x")], embedding=EMBEDDING
    )
    await memory.passages.CreatePassages(stored)
    assert [archive.name for archive in (await get(memory, other)).archives] == ["Ada's Archive"]


async def test_reading_a_memory_is_one_statement_and_of_fifty_agents_three(memory: Memory) -> None:
    agents = [await memory.agent_with(human="h", persona="p") for _ in range(50)]
    for agent in agents[:5]:
        await memory.store(agent, "passage")
    memory.counter.reset()
    one = await get(memory, agents[0])
    assert await memory.statement_counts() == (1, 1)
    memory.counter.reset()
    request = pb.BatchGetAgentMemoryRequest(agent_ids=[*agents, f"agent-{uuid4()}"])
    many = (await memory.agents.BatchGetAgentMemory(request)).memories
    assert await memory.statement_counts() == (3, 3)
    assert [memory.agent_id for memory in many] == list(request.agent_ids)
    assert list(many[0].blocks) == list(one.blocks)
    assert list(many[0].archives) == list(one.archives)
    assert (len(many[5].archives), many[0].passage_count) == (0, 0)
    with fails(InvalidArgument):
        await memory.agents.BatchGetAgentMemory(pb.BatchGetAgentMemoryRequest())


@pytest.mark.parametrize("erase", [False, True])
async def test_purging_leaves_what_others_need(memory: Memory, erase: bool) -> None:
    agent, other = f"agent-{uuid4()}", f"agent-{uuid4()}"
    own, lent = draft("own"), draft("lent")
    free = (await memory.blocks.CreateBlock(block_pb.CreateBlockRequest(block=draft("free")))).block
    await create(memory, agent, own, lent, ids=[free.id])
    await create(memory, other, ids=[lent.id])
    await memory.store(agent, "forget me")
    await memory.store(other, "keep me")
    first = await memory.apply(agent, "core_memory_append", call_key="k", label="own", content="x")
    purge = pb.PurgeAgentRequest(agent_id=agent, erase_blocks=erase)
    for _ in range(2):
        await memory.agents.PurgeAgent(purge)
    assert await get(memory, agent) == pb.AgentMemory(agent_id=agent)
    assert await exists(memory, own.id) is not erase
    assert await exists(memory, lent.id)
    assert await exists(memory, free.id)
    assert len(await memory.search(other, "keep")) == 1
    for table in ("passages", "passage_vectors", "archives"):
        left = f"SELECT count(*) FROM memory.{table} WHERE organization_id = $1"
        assert await memory.pool.fetchval(left, memory.caller.organization_id) == 1
    assert not first.is_error
    repeated = await memory.apply(agent, "core_memory_append", call_key="k", label="own", content="x")
    assert repeated.is_error
