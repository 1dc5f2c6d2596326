"""Whom blocks are about: links, filters, tenants apart."""

from __future__ import annotations

from uuid import uuid4

import pytest

from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as pb
from services.common.errors import InvalidArgument, NotFound
from tests.integration.memory.harness import Memory, fails


def new_identity() -> str:
    return f"identity-{uuid4()}"


async def create(memory: Memory, label: str) -> str:
    request = pb.CreateBlockRequest(block=block_pb2.Block(label=label))
    return (await memory.blocks.CreateBlock(request)).block.id


async def attach(memory: Memory, block_id: str, identity_id: str) -> None:
    await memory.blocks.AttachIdentity(pb.AttachIdentityRequest(block_id=block_id, identity_id=identity_id))


async def set_blocks(memory: Memory, identity_id: str, *block_ids: str) -> None:
    await memory.blocks.SetIdentityBlocks(pb.SetIdentityBlocksRequest(identity_id=identity_id, block_ids=block_ids))


async def blocks_of(memory: Memory, *identity_ids: str) -> dict[str, list[str]]:
    request = pb.BatchGetIdentityBlocksRequest(identity_ids=identity_ids)
    response = await memory.blocks.BatchGetIdentityBlocks(request)
    return {each.identity_id: list(each.block_ids) for each in response.identities}


async def list_page(memory: Memory, *identity_ids: str, identity_id: str | None = None) -> list[str]:
    request = pb.ListBlocksRequest(identity_ids=identity_ids, identity_id=identity_id)
    return [block.id for block in (await memory.blocks.ListBlocks(request)).blocks]


async def test_a_block_is_about_identities_until_it_is_detached(memory: Memory) -> None:
    ada, bob = new_identity(), new_identity()
    first, second = await create(memory, "first"), await create(memory, "second")
    for block_id, identity_id in ((first, ada), (first, ada), (second, ada), (second, bob)):
        await attach(memory, block_id, identity_id)
    assert await blocks_of(memory, ada, bob, new_identity()) == {ada: [first, second], bob: [second]}
    assert await list_page(memory, ada) == [first, second]
    assert await list_page(memory, bob, ada) == [first, second]
    assert await list_page(memory, ada, identity_id=bob) == [second]
    statement_counts = await memory.blocks.CountBlocks(pb.CountBlocksRequest(identity_ids=[bob]))
    assert statement_counts.blocks == 1

    for _ in range(2):
        await memory.blocks.DetachIdentity(pb.DetachIdentityRequest(block_id=second, identity_id=ada))
    assert await blocks_of(memory, ada, bob) == {ada: [first], bob: [second]}
    await memory.blocks.DeleteBlock(pb.DeleteBlockRequest(block_id=first))
    assert await blocks_of(memory, ada) == {}


async def test_all_blocks_of_an_identity_are_set_at_once_or_not_at_all(memory: Memory) -> None:
    ada = new_identity()
    blocks = [await create(memory, label) for label in "abc"]
    for _ in range(2):
        await set_blocks(memory, ada, blocks[2], blocks[0])
    assert await blocks_of(memory, ada) == {ada: [blocks[2], blocks[0]]}

    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await set_blocks(memory, ada, blocks[1], f"block-{uuid4()}")
    assert await blocks_of(memory, ada) == {ada: [blocks[2], blocks[0]]}

    await set_blocks(memory, ada, blocks[0], blocks[1])
    assert await blocks_of(memory, ada) == {ada: blocks[:2]}
    for _ in range(2):
        await memory.blocks.PurgeIdentity(pb.PurgeIdentityRequest(identity_id=ada))
    assert await blocks_of(memory, ada) == {}


async def test_unknown_blocks_and_bad_ids_are_refused(memory: Memory) -> None:
    unknown, ada = f"block-{uuid4()}", new_identity()
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await attach(memory, unknown, ada)
    with fails(NotFound, "BLOCK_NOT_FOUND"):
        await memory.blocks.DetachIdentity(pb.DetachIdentityRequest(block_id=unknown, identity_id=ada))
    with fails(InvalidArgument, "INVALID_ID"):
        await attach(memory, await create(memory, "x"), "ada")
    with fails(InvalidArgument, "PAGE_SIZE_INVALID"):
        await blocks_of(memory, *[ada] * 1_001)


@pytest.mark.parametrize("identities", [1, 50])
async def test_any_number_of_identities_is_one_statement(memory: Memory, identities: int) -> None:
    block, ids = await create(memory, "x"), [new_identity() for _ in range(identities)]
    for identity_id in ids:
        await attach(memory, block, identity_id)
    before = memory.counter.statements
    assert len(await blocks_of(memory, *ids)) == identities
    assert memory.counter.statements - before == 1
