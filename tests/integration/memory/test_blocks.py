"""The API of blocks: what may be stored, versions, attachment, lists, and tenants apart."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import orjson
import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as pb
from services.common.errors import Aborted, AlreadyExists, InvalidArgument, NotFound, ResourceExhausted
from tests.integration.memory.harness import Memory, fails
from tests.page_requests import paged


async def create(memory: Memory, **fields: Any) -> block_pb2.Block:
    request = pb.CreateBlockRequest(block=block_pb2.Block(**{"label": "human", **fields}))
    return (await memory.blocks.CreateBlock(request)).block


async def update(
    memory: Memory, block_id: str, *, version: int | None = None, mask: list[str] | None = None, **fields: Any
) -> block_pb2.Block:
    request = pb.UpdateBlockRequest(
        key=pb.BlockKey(block_id=block_id), block=block_pb2.Block(**fields), expected_version=version
    )
    request.update_mask.paths.extend(list(fields) if mask is None else mask)
    return (await memory.blocks.UpdateBlock(request)).block


async def get(memory: Memory, block_id: str) -> block_pb2.Block:
    return (await memory.blocks.GetBlock(pb.GetBlockRequest(key=pb.BlockKey(block_id=block_id)))).block


async def list_page(memory: Memory, **fields: Any) -> list[str]:
    """Values of all pages."""
    values: list[str] = []
    request = pb.ListBlocksRequest(**paged(**fields))
    while True:
        response = await memory.blocks.ListBlocks(request)
        values += [block.value for block in response.blocks]
        if not response.next_page_token:
            return values
        request.page.page_token = response.next_page_token


async def versions(memory: Memory, block_id: str) -> list[int]:
    response = await memory.blocks.ListBlockVersions(pb.ListBlockVersionsRequest(block_id=block_id))
    return [version.version for version in response.versions]


async def test_a_block_comes_back_as_it_was_created(memory: Memory) -> None:
    metadata = {"a": [1, {"b": None}], "c": "é"}
    block = await create(
        memory,
        value="x",
        description="d",
        limit=5,
        hidden=True,
        read_only=True,
        metadata_json=orjson.dumps(metadata).decode(),
        tags=["b", "a", "b"],
        project_id="p",
        template_name="t",
        is_template=True,
        template_id="ti",
        base_template_id="bt",
        deployment_id="de",
        entity_id="en",
        preserve_on_migration=True,
    )
    assert await get(memory, block.id) == block
    assert (block.label, block.value, block.limit, block.description) == ("human", "x", 5, "d")
    assert orjson.loads(block.metadata_json) == metadata
    assert list(block.tags) == ["a", "b"]
    assert (block.version, block.hidden, block.read_only, block.is_template) == (1, True, True, True)
    assert (block.project_id, block.template_name) == ("p", "t")
    assert (block.template_id, block.base_template_id, block.deployment_id, block.entity_id) == ("ti", "bt", "de", "en")
    assert block.preserve_on_migration
    assert block.created_by_id == block.last_updated_by_id == f"user-{memory.caller.user_id}"
    plain = await create(memory)
    assert (plain.limit, plain.value, plain.metadata_json) == (100_000, "", "")
    assert not plain.HasField("description")


@pytest.mark.parametrize(
    ("fields", "reason", "part"),
    [
        ({"label": ""}, "BLOCK_INVALID", "1 to 100 characters"),
        ({"label": "l" * 101}, "BLOCK_INVALID", "1 to 100 characters"),
        ({"value": "abc", "limit": 2}, "BLOCK_OVER_LIMIT", "3 characters long, its limit is 2"),
        ({"limit": -1}, "BLOCK_INVALID", "limit is 1 to"),
        ({"limit": 10_000_001}, "BLOCK_INVALID", "limit is 1 to"),
        ({"metadata_json": "[]"}, "BLOCK_INVALID", "must be a JSON object"),
        ({"metadata_json": "{"}, "BLOCK_INVALID", "not valid JSON"),
        ({"tags": [""]}, "BLOCK_INVALID", "a tag has"),
        ({"id": "block-1"}, "INVALID_ID", "block-<uuid>"),
    ],
)
async def test_what_may_not_be_stored(memory: Memory, fields: Any, reason: str, part: str) -> None:
    with fails(InvalidArgument, reason) as caught:
        await create(memory, **fields)
    assert part in caught[0].message


async def test_nul_is_dropped_everywhere(memory: Memory) -> None:
    block = await create(
        memory,
        label="hu\0man",
        value="a\0b",
        description="\0",
        metadata_json='{"\\u0000k": "\\u0000v"}',
        tags=["t\0"],
    )
    assert (block.label, block.value, block.description) == ("human", "ab", "")
    assert (block.metadata_json, list(block.tags)) == ('{"k":"v"}', ["t"])
    assert (await update(memory, block.id, value="\0c")).value == "c"
    assert await list_page(memory, label="hu\0man", value_search="\0c") == ["c"]


async def test_creating_is_idempotent_by_id(memory: Memory) -> None:
    block_id = f"block-{uuid4()}"
    first = await create(memory, id=block_id, value="a")
    assert await create(memory, id=block_id, value="a") == first
    changed = await update(memory, block_id, value="b")
    assert await create(memory, id=block_id, value="a") == changed
    with fails(AlreadyExists, "BLOCK_ID_TAKEN"):
        await create(memory, id=block_id, value="other")


async def test_updates_change_what_the_mask_names_and_make_one_version(memory: Memory) -> None:
    block = await create(memory, value="a", description="d", limit=10)
    changed = await update(memory, block.id, value="b", description="e", mask=["value"])
    assert (changed.value, changed.description, changed.version) == ("b", "d", 2)
    assert (await update(memory, block.id, value="b")).version == 2
    assert (await update(memory, block.id, mask=["limit"])).limit == 100_000
    assert not (await update(memory, block.id, mask=["description"])).HasField("description")
    assert await versions(memory, block.id) == [4, 3, 2, 1]
    with fails(Aborted, "BLOCK_VERSION_CONFLICT"):
        await update(memory, block.id, version=2, value="c")
    assert (await update(memory, block.id, version=4, value="c")).version == 5
    with fails(InvalidArgument, "BLOCK_OVER_LIMIT"):
        await update(memory, block.id, limit=1, value="ab")
    with fails(InvalidArgument, "UPDATE_MASK_INVALID"):
        await update(memory, block.id, mask=["id"])
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await update(memory, f"block-{uuid4()}", value="x")


async def test_a_label_is_one_per_agent_and_follows_the_block(memory: Memory) -> None:
    agent = await memory.agent_with(human="h")
    other = await create(memory, label="human")
    attach = pb.AttachBlockRequest(agent_id=agent, block_id=other.id)
    with fails(AlreadyExists, "BLOCK_LABEL_TAKEN"):
        await memory.blocks.AttachBlock(attach)
    await update(memory, other.id, label="persona")
    await memory.blocks.AttachBlock(attach)
    await memory.blocks.AttachBlock(attach)
    await update(memory, other.id, label="pet", value="p")
    assert await memory.value(agent, "pet") == "p"
    with fails(AlreadyExists, "BLOCK_LABEL_TAKEN"):
        await update(memory, other.id, label="human")
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await memory.value(agent, "persona")
    response = await memory.blocks.ListBlockAgents(pb.ListBlockAgentsRequest(block_id=other.id))
    assert list(response.agent_ids) == [agent]
    detach = pb.DetachBlockRequest(agent_id=agent, block_id=other.id)
    await memory.blocks.DetachBlock(detach)
    with fails(NotFound, "BLOCK_NOT_ATTACHED"):
        await memory.blocks.DetachBlock(detach)
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await memory.blocks.AttachBlock(pb.AttachBlockRequest(agent_id=agent, block_id=f"block-{uuid4()}"))


async def test_deleting_detaches_and_forgets(memory: Memory) -> None:
    agent = await memory.agent_with(human="h")
    key = pb.BlockKey(agent_label=pb.AgentLabel(agent_id=agent, label="human"))
    block = (await memory.blocks.GetBlock(pb.GetBlockRequest(key=key))).block
    await memory.blocks.DeleteBlock(pb.DeleteBlockRequest(block_id=block.id))
    for call in (
        memory.blocks.GetBlock(pb.GetBlockRequest(key=key)),
        memory.blocks.DeleteBlock(pb.DeleteBlockRequest(block_id=block.id)),
        memory.blocks.ListBlockVersions(pb.ListBlockVersionsRequest(block_id=block.id)),
    ):
        with fails(NotFound, "BLOCK_NOT_FOUND"):
            await call


async def test_lists_filter(memory: Memory) -> None:
    agent = await memory.agent_with(human="Mine 100%", persona="mine")
    await create(memory, label="Company", value="a", description="The FIRM", tags=["x", "y"])
    await create(memory, label="other", value="b", hidden=True)
    await create(memory, label="tmpl", value="c", is_template=True, tags=["x"])
    assert await list_page(memory) == ["Mine 100%", "mine", "a", "c"]
    assert await list_page(memory, show_hidden=True) == ["Mine 100%", "mine", "a", "b", "c"]
    assert await list_page(memory, agent_id=agent) == ["Mine 100%", "mine"]
    assert await list_page(memory, label="persona") == ["mine"]
    assert await list_page(memory, label_search="comp") == ["a"]
    assert await list_page(memory, value_search="MINE") == ["Mine 100%", "mine"]
    assert await list_page(memory, value_search="0%") == ["Mine 100%"]
    assert await list_page(memory, description_search="firm") == ["a"]
    assert await list_page(memory, tags=["x"]) == ["a", "c"]
    assert await list_page(memory, tags=["x", "y"]) == ["a"]
    assert await list_page(memory, is_template=True) == ["c"]
    assert await list_page(memory, is_template=False, tags=["x"]) == ["a"]


async def test_lists_page_both_ways(memory: Memory) -> None:
    blocks = [await create(memory, value=str(number)) for number in range(7)]
    every = [str(number) for number in range(7)]
    assert await list_page(memory, page_size=3) == every
    assert await list_page(memory, page_size=3, descending=True) == every[::-1]
    assert await list_page(memory, page_size=2, after=blocks[2].id) == every[3:]
    assert await list_page(memory, page_size=2, after=blocks[2].id, descending=True) == ["1", "0"]
    assert await list_page(memory, after=blocks[1].id, before=blocks[5].id, page_size=2) == ["2", "3", "4"]

    async def page(**fields: Any) -> list[str]:
        response = await memory.blocks.ListBlocks(pb.ListBlocksRequest(**paged(**fields)))
        return [block.value for block in response.blocks]

    assert await page(before=blocks[5].id, page_size=2) == ["3", "4"]
    assert await page(before=blocks[2].id, page_size=2, descending=True) == ["4", "3"]
    assert await list_page(memory, before=blocks[5].id, page_size=2) == ["3", "4", "1", "2", "0"]
    await memory.blocks.DeleteBlock(pb.DeleteBlockRequest(block_id=blocks[2].id))
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await page(after=blocks[2].id)
    with fails(InvalidArgument, "PAGE_SIZE_INVALID"):
        await page(page_size=1_001)
    for token in ("x", "eA==", "MS4x"):
        with fails(InvalidArgument, "PAGE_TOKEN_INVALID"):
            await page(page_token=token)


async def test_versions_page_from_the_newest(memory: Memory) -> None:
    block = await create(memory)
    for number in range(4):
        await update(memory, block.id, value=str(number))
    request = pb.ListBlockVersionsRequest(block_id=block.id, page=PageRequest(page_size=3))
    first = await memory.blocks.ListBlockVersions(request)
    request.page.page_token = first.next_page_token
    second = await memory.blocks.ListBlockVersions(request)
    assert [version.value for version in (*first.versions, *second.versions)] == ["3", "2", "1", "0", ""]
    assert second.next_page_token == ""


async def test_tenants_do_not_see_each_other(memory: Memory) -> None:
    agent = await memory.agent_with(human="secret")
    block = await create(memory, value="secret")
    await memory.store(agent, "secret passage")
    with memory.of(uuid4()):
        with fails(NotFound, "BLOCK_NOT_FOUND"):
            await get(memory, block.id)
        with fails(NotFound, "BLOCK_NOT_FOUND"):
            await update(memory, block.id, value="x")
        with fails(NotFound, "BLOCK_NOT_FOUND"):
            await memory.blocks.AttachBlock(pb.AttachBlockRequest(agent_id=agent, block_id=block.id))
        assert await list_page(memory) == []
        assert await memory.search(agent, "secret passage") == []
        # Ids are unique within a tenant, not across them.
        assert (await create(memory, id=block.id, value="mine")).value == "mine"
    assert (await get(memory, block.id)).value == "secret"


async def test_last_writer_wins_and_history_keeps_both(memory: Memory) -> None:
    block = await create(memory)
    await asyncio.gather(*(update(memory, block.id, value=str(number)) for number in range(20)))
    assert (await get(memory, block.id)).version == 21
    response = await memory.blocks.ListBlockVersions(pb.ListBlockVersionsRequest(block_id=block.id))
    assert {version.value for version in response.versions} == {"", *map(str, range(20))}


async def test_more_values_than_an_answer_holds_stay_in_the_database(memory: Memory) -> None:
    block = await create(memory, limit=10_000_000)
    for number in range(4):
        await update(memory, block.id, value=f"{number}" * 9_000_000)
        await create(memory, label=f"b{number}", value="x" * 9_000_000, limit=10_000_000)
    versions = pb.ListBlockVersionsRequest(block_id=block.id)
    with fails(ResourceExhausted, "RESOURCE_EXHAUSTED") as refused:
        await memory.blocks.ListBlockVersions(versions)
    assert "ask for fewer" in refused[0].message
    with fails(ResourceExhausted, "RESOURCE_EXHAUSTED"):
        await memory.blocks.ListBlocks(pb.ListBlocksRequest())
    versions.page.page_size = 2
    found = (await memory.blocks.ListBlockVersions(versions)).versions
    assert [(version.version, version.value[:1]) for version in found] == [(5, "3"), (4, "2")]


async def test_tags_page_by_name(memory: Memory) -> None:
    await create(memory, tags=["b", "Zebra"])
    await create(memory, tags=["a", "b", "éclair"], hidden=True)

    async def tags(**fields: Any) -> list[str]:
        return list((await memory.blocks.ListBlockTags(pb.ListBlockTagsRequest(**paged(**fields)))).tags)

    assert await tags() == ["Zebra", "a", "b", "éclair"]
    assert await tags(descending=True) == ["éclair", "b", "a", "Zebra"]
    assert await tags(page_size=2, after="Zebra") == ["a", "b"]
    assert await tags(page_size=2, before="éclair") == ["a", "b"]
    assert await tags(page_size=2, descending=True, after="éclair") == ["b", "a"]
    assert await tags(page_size=1, descending=True, before="a") == ["b"]
    assert await tags(after="Zebra", before="b") == ["a"]
    assert await tags(query_text="EB") == ["Zebra"]
    assert await tags(query_text="%") == []
    with fails(InvalidArgument, "PAGE_SIZE_INVALID"):
        await tags(page_size=1_001)
