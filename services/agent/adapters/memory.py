"""The port Memory over gRPC to the memory service."""

from uuid import UUID

import grpc

from loci.memory.v1 import (
    agent_memory_service_pb2,
    agent_memory_service_pb2_grpc,
    block_pb2,
    folder_pb2,
    passage_service_pb2,
    passage_service_pb2_grpc,
)
from services.agent.core.messages import Call, Return
from services.agent.core.ports import BlockView, CallSite, DirectoryView, FileView, MemoryView
from services.common.channel import call_idempotent
from services.common.context import run_independent
from services.common.ids import from_public, to_public

# A service that is being restarted is back by then.
PATIENCE_SECONDS = 30.0
# A run that goes on waits no longer for the word that its earlier owners are refused.
FENCE_SECONDS = 2.0
# What is only helpful is not waited for long.
RECALL_SECONDS = 5.0
LONGEST_QUERY = 10_000


class GrpcMemory:
    """Memory behind the memory service. Every call here may be repeated without harm."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._memory = agent_memory_service_pb2_grpc.AgentMemoryServiceStub(channel)
        self._passages = passage_service_pb2_grpc.PassageServiceStub(channel)

    async def view(self, agent_id: UUID, conversation_id: UUID) -> MemoryView:
        """See ports.Memory.view."""
        request = agent_memory_service_pb2.GetAgentMemoryRequest(
            agent_id=to_public("agent", agent_id), conversation_id=own_id(agent_id, conversation_id)
        )
        with run_independent():
            response = await call_idempotent(self._memory.GetAgentMemory, request, timeout=PATIENCE_SECONDS)
        memory = response.memory
        return MemoryView(
            tuple(map(_block, memory.blocks)),
            memory.passage_count,
            tuple(memory.passage_tags),
            tuple(map(_directory, memory.directories)),
        )

    async def apply(self, call: Call, site: CallSite, *, create_block: bool = False) -> Return:
        """See ports.Memory.apply."""
        most_open, characters = site.settings.file_limits
        request = agent_memory_service_pb2.ApplyToolRequest(
            call_key=call.key,
            agent_id=to_public("agent", site.agent_id),
            run_id=to_public("run", site.run_id) if site.run_id else "",
            step_id=to_public("step", site.step_id) if site.step_id else "",
            tool_name=call.name,
            arguments_json=call.arguments,
            embedding=site.settings.embedding,
            agent_name=site.settings.agent_name,
            timezone=site.settings.timezone,
            conversation_id=own_id(site.agent_id, site.conversation_id),
            create_missing_block=create_block,
            max_files_open=most_open,
            per_file_view_chars=characters,
        )
        response = await call_idempotent(self._memory.ApplyTool, request, timeout=PATIENCE_SECONDS)
        return Return(call.id, call.name, response.tool_return, response.is_error)

    async def fence(self) -> None:
        """See ports.Memory.fence."""
        await call_idempotent(self._memory.FenceRun, agent_memory_service_pb2.FenceRunRequest(), timeout=FENCE_SECONDS)

    async def recall(self, agent_id: UUID, query: str, most: int) -> tuple[str, ...]:
        """See ports.Memory.recall."""
        request = passage_service_pb2.SearchPassagesRequest(
            agent_id=to_public("agent", agent_id), query=query[:LONGEST_QUERY], top_k=most
        )
        response = await call_idempotent(self._passages.SearchPassages, request, timeout=RECALL_SECONDS)
        return tuple(hit.passage.text for hit in response.hits)


def own_id(agent_id: UUID, conversation_id: UUID) -> str:
    """Returns the id of a conversation that may have memory of its own; the default one has the agent's."""
    return "" if conversation_id == agent_id else to_public("conv", conversation_id)


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


def _directory(directory: folder_pb2.Directory) -> DirectoryView:
    files = (
        FileView(from_public("file", file.file_id), file.name, file.is_open, file.visible_content)
        for file in directory.files
    )
    return DirectoryView(
        directory.name, directory.description, directory.instructions, tuple(files), directory.file_count
    )
