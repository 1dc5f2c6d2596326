"""Blocks about identities and blocks of groups, behind the memory service. Every call may be repeated."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import grpc

from loci.memory.v1 import (
    agent_memory_service_pb2,
    agent_memory_service_pb2_grpc,
    block_service_pb2,
    block_service_pb2_grpc,
)
from services.agent.adapters.catalogues import PATIENCE_SECONDS
from services.common.channel import call_idempotent
from services.common.errors import NotFound
from services.common.ids import from_public, to_public

# Limits of BatchGetIdentityBlocks and BatchGetAgentMemory.
_AT_ONCE = 1_000


class GrpcIdentityMemories:
    """`resources.identities.ports.IdentityMemories`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._blocks = block_service_pb2_grpc.BlockServiceStub(channel)

    async def set_blocks(self, identity_id: UUID, block_ids: Sequence[UUID]) -> None:
        request = block_service_pb2.SetIdentityBlocksRequest(
            identity_id=to_public("identity", identity_id), block_ids=[to_public("block", each) for each in block_ids]
        )
        await call_idempotent(self._blocks.SetIdentityBlocks, request, timeout=PATIENCE_SECONDS)

    async def blocks_of(self, identity_ids: Sequence[UUID]) -> Mapping[UUID, tuple[UUID, ...]]:
        if not identity_ids:
            return {}
        request = block_service_pb2.BatchGetIdentityBlocksRequest(
            identity_ids=[to_public("identity", each) for each in identity_ids]
        )
        response = await call_idempotent(self._blocks.BatchGetIdentityBlocks, request, timeout=PATIENCE_SECONDS)
        return {
            from_public("identity", each.identity_id): tuple(from_public("block", text) for text in each.block_ids)
            for each in response.identities
        }

    async def purge_identity(self, identity_id: UUID) -> None:
        request = block_service_pb2.PurgeIdentityRequest(identity_id=to_public("identity", identity_id))
        await call_idempotent(self._blocks.PurgeIdentity, request, timeout=PATIENCE_SECONDS)


class GrpcSharedBlocks:
    """`resources.groups.ports.SharedBlocks`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._blocks = block_service_pb2_grpc.BlockServiceStub(channel)
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)

    async def attachments(self, agent_ids: Sequence[UUID]) -> frozenset[tuple[UUID, UUID]]:
        if not agent_ids:
            return frozenset()
        request = agent_memory_service_pb2.BatchGetAgentMemoryRequest(
            agent_ids=[to_public("agent", agent_id) for agent_id in agent_ids[:_AT_ONCE]]
        )
        response = await call_idempotent(self._memory.BatchGetAgentMemory, request, timeout=PATIENCE_SECONDS)
        return frozenset(
            (from_public("agent", memory.agent_id), from_public("block", block.id))
            for memory in response.memories
            for block in memory.blocks
        )

    async def attach_block(self, agent_id: UUID, block_id: UUID) -> None:
        request = block_service_pb2.AttachBlockRequest(
            agent_id=to_public("agent", agent_id), block_id=to_public("block", block_id)
        )
        await call_idempotent(self._blocks.AttachBlock, request, timeout=PATIENCE_SECONDS)

    async def detach_block(self, agent_id: UUID, block_id: UUID) -> None:
        request = block_service_pb2.DetachBlockRequest(
            agent_id=to_public("agent", agent_id), block_id=to_public("block", block_id)
        )
        try:
            await call_idempotent(self._blocks.DetachBlock, request, timeout=PATIENCE_SECONDS)
        except NotFound:
            return  # it is not attached, or there is no such block any more
