"""The port TransferMemories over gRPC to the memory service."""

from collections.abc import Sequence
from uuid import UUID

import grpc

from loci.memory.v1 import (
    agent_memory_service_pb2,
    agent_memory_service_pb2_grpc,
    archive_service_pb2,
    archive_service_pb2_grpc,
)
from services.agent.adapters.catalogues import PATIENCE_SECONDS
from services.common.channel import call_idempotent
from services.common.ids import to_public


class GrpcTransferMemories:
    """`resources.transfers.ports.TransferMemories`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)
        self._archives = archive_service_pb2_grpc.ArchiveServiceStub(channel)

    async def attach_archive(self, agent_id: UUID, archive_id: UUID) -> None:
        request = archive_service_pb2.AttachArchiveRequest(
            agent_id=to_public("agent", agent_id), archive_id=to_public("archive", archive_id)
        )
        await call_idempotent(self._archives.AttachArchive, request, timeout=PATIENCE_SECONDS)

    async def adopt(self, agent_id: UUID, conversation_id: UUID, block_ids: Sequence[UUID]) -> tuple[str, ...]:
        request = agent_memory_service_pb2.IsolateBlocksRequest(
            agent_id=to_public("agent", agent_id),
            conversation_id=to_public("conv", conversation_id),
            block_ids=[to_public("block", block_id) for block_id in block_ids],
        )
        response = await call_idempotent(self._memory.IsolateBlocks, request, timeout=PATIENCE_SECONDS)
        return tuple(block.label for block in response.blocks)
