"""The port Memory over gRPC to the memory service."""

from uuid import UUID

import grpc

from loci.memory.v1 import agent_memory_service_pb2, agent_memory_service_pb2_grpc, block_pb2
from services.agent.messages import Call, Return
from services.agent.ports import BlockView, CallSite, MemoryView
from services.common.channel import call_idempotent
from services.common.ids import from_public, to_public

# A service that is being restarted is back by then.
PATIENCE_SECONDS = 30.0


class GrpcMemory:
    """Memory behind the memory service. Every call here may be repeated without harm."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)

    async def view(self, agent_id: UUID) -> MemoryView:
        """See ports.Memory.view."""
        request = agent_memory_service_pb2.GetAgentMemoryRequest(agent_id=to_public("agent", agent_id))
        response = await call_idempotent(self._memory.GetAgentMemory, request, timeout=PATIENCE_SECONDS)
        memory = response.memory
        return MemoryView(tuple(map(_block, memory.blocks)), memory.passage_count, tuple(memory.passage_tags))

    async def apply(self, call: Call, site: CallSite) -> Return:
        """See ports.Memory.apply."""
        request = agent_memory_service_pb2.ApplyToolRequest(
            call_key=call.key,
            agent_id=to_public("agent", site.agent_id),
            run_id=to_public("run", site.run_id),
            step_id=to_public("step", site.step_id),
            tool_name=call.name,
            arguments_json=call.arguments,
            embedding=site.settings.embedding,
            timezone=site.settings.timezone,
        )
        response = await call_idempotent(self._memory.ApplyTool, request, timeout=PATIENCE_SECONDS)
        return Return(call.id, call.name, response.tool_return, response.is_error)


def _block(block: block_pb2.Block) -> BlockView:
    return BlockView(
        from_public("block", block.id),
        block.version,
        block.label,
        block.value,
        block.limit,
        block.description,
        block.read_only,
    )
