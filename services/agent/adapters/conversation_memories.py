"""The port ConversationMemories over gRPC to the memory service."""

from uuid import UUID

import grpc

from loci.memory.v1 import agent_memory_service_pb2, agent_memory_service_pb2_grpc
from services.agent.adapters.catalogues import PATIENCE_SECONDS
from services.common.channel import call_idempotent
from services.common.ids import from_public, to_public


class GrpcConversationMemories:
    """`resources.conversations.ports.ConversationMemories`. Every call here may be repeated without harm."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)

    async def isolate(
        self, agent_id: UUID, conversation_id: UUID, labels: tuple[str, ...], source_id: UUID | None = None
    ) -> tuple[UUID, ...]:
        request = agent_memory_service_pb2.IsolateBlocksRequest(
            agent_id=to_public("agent", agent_id),
            conversation_id=to_public("conv", conversation_id),
            labels=labels,
            source_conversation_id="" if source_id is None else to_public("conv", source_id),
        )
        response = await call_idempotent(self._memory.IsolateBlocks, request, timeout=PATIENCE_SECONDS)
        return tuple(from_public("block", block.id) for block in response.blocks)

    async def isolated_block_ids(self, agent_id: UUID, conversation_id: UUID) -> tuple[UUID, ...]:
        request = agent_memory_service_pb2.GetAgentMemoryRequest(
            agent_id=to_public("agent", agent_id), conversation_id=to_public("conv", conversation_id)
        )
        response = await call_idempotent(self._memory.GetAgentMemory, request, timeout=PATIENCE_SECONDS)
        return tuple(from_public("block", block_id) for block_id in response.memory.isolated_block_ids)

    async def purge_conversation(self, agent_id: UUID, conversation_id: UUID) -> None:
        request = agent_memory_service_pb2.PurgeConversationRequest(
            agent_id=to_public("agent", agent_id), conversation_id=to_public("conv", conversation_id)
        )
        await call_idempotent(self._memory.PurgeConversation, request, timeout=PATIENCE_SECONDS)
