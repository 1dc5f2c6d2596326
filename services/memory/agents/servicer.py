"""loci.memory.v1.AgentMemoryService."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import agent_memory_service_pb2_grpc as agent_grpc
from services.common.codec import Codec
from services.common.context import current
from services.common.core.storable import storable
from services.common.errors import InvalidArgument
from services.common.ids import from_public, optional_id, to_public
from services.common.purge import organization_to_purge
from services.memory import wire
from services.memory.agent_files.model import AgentFile
from services.memory.agent_files.servicer import agent_file_message, directory_message, file_limits
from services.memory.agent_tools.model import ToolCall, ToolResult
from services.memory.agent_tools.service import ToolService
from services.memory.agents.model import AgentMemory, BlockEdit, CopyRequest, RestoreRequest
from services.memory.agents.service import VersionService
from services.memory.archives.servicer import archive_message
from services.memory.blocks.convert import block_draft, block_message
from services.memory.blocks.model import Origin, validate
from services.memory.core.ports.agents import AgentStore, CopyStore
from services.memory.core.ports.files import AgentFileStore
from services.memory.folders.convert import folder_message
from services.memory.folders.model import Folder

_MOST_AGENTS = _MOST_RUNS = 1_000

_EDITS = Codec(BlockEdit, agent_pb.BlockEdit)


class AgentMemoryServicer(agent_grpc.AgentMemoryServiceServicer):
    """loci.memory.v1.AgentMemoryService."""

    def __init__(
        self,
        store: AgentStore,
        tools: ToolService,
        copies: CopyStore,
        versions: VersionService,
        agent_files: AgentFileStore,
    ) -> None:
        self._store = store
        self._tools = tools
        self._copies = copies
        self._versions = versions
        self._agent_files = agent_files

    async def GetAgentMemory(
        self, request: agent_pb.GetAgentMemoryRequest, context: Any
    ) -> agent_pb.GetAgentMemoryResponse:
        conversation_id = wire.conversation_id(request.conversation_id)
        memory = await self._store.memory(current().organization_id, wire.agent_id(request.agent_id), conversation_id)
        return agent_pb.GetAgentMemoryResponse(memory=memory_message(memory))

    async def BatchGetAgentMemory(
        self, request: agent_pb.BatchGetAgentMemoryRequest, context: Any
    ) -> agent_pb.BatchGetAgentMemoryResponse:
        if not 1 <= len(request.agent_ids) <= _MOST_AGENTS:
            raise InvalidArgument(
                f"ask for 1 to {_MOST_AGENTS} agents, not {len(request.agent_ids)}",
                reason="PAGE_SIZE_INVALID",
            )
        agent_ids = [wire.agent_id(text) for text in request.agent_ids]
        memories = await self._store.memories(current().organization_id, agent_ids)
        folders = await self._agent_files.folders(current().organization_id, agent_ids)
        # Most agents have no folders.
        with_files = list(folders) if request.include_files else ()
        files = await self._agent_files.of_many(current().organization_id, with_files) if with_files else {}
        return agent_pb.BatchGetAgentMemoryResponse(
            memories=[
                memory_message(memory, folders.get(memory.agent_id, ()), files.get(memory.agent_id, ()))
                for memory in memories
            ]
        )

    async def CreateAgentMemory(
        self, request: agent_pb.CreateAgentMemoryRequest, context: Any
    ) -> agent_pb.CreateAgentMemoryResponse:
        caller = current()
        agent_id = wire.agent_id(request.agent_id)
        drafts = [validate(block_draft(draft, id_needed=True)) for draft in request.blocks]
        block_ids = [wire.block_id(text) for text in request.block_ids]
        await self._store.create(caller.organization_id, caller.user_id, agent_id, drafts, block_ids)
        memory = await self._store.memory(caller.organization_id, agent_id)
        return agent_pb.CreateAgentMemoryResponse(memory=memory_message(memory))

    async def ApplyTool(self, request: agent_pb.ApplyToolRequest, context: Any) -> agent_pb.ApplyToolResponse:
        caller = current()
        call = tool_call(request, caller.organization_id, caller.user_id)
        return result_message(await self._tools.apply(call))

    async def FenceRun(self, request: agent_pb.FenceRunRequest, context: Any) -> agent_pb.FenceRunResponse:
        caller = current()
        if caller.run_id is not None:
            await self._tools.fence(caller.organization_id, caller.run_id, caller.fence)
        return agent_pb.FenceRunResponse()

    async def PurgeAgent(self, request: agent_pb.PurgeAgentRequest, context: Any) -> agent_pb.PurgeAgentResponse:
        agent_id = wire.agent_id(request.agent_id)
        await self._store.purge(current().organization_id, agent_id, erase_blocks=request.erase_blocks)
        return agent_pb.PurgeAgentResponse()

    async def IsolateBlocks(
        self, request: agent_pb.IsolateBlocksRequest, context: Any
    ) -> agent_pb.IsolateBlocksResponse:
        caller = current()
        agent_id = wire.agent_id(request.agent_id)
        conversation_id = wire.needed_conversation_id(request.conversation_id)
        copies = await self._copies.isolate(
            caller.organization_id,
            caller.user_id,
            agent_id,
            conversation_id,
            list(dict.fromkeys(storable(label) for label in request.labels)),
            wire.conversation_id(request.source_conversation_id),
            versions_by_block(request.versions),
        )
        if request.block_ids:
            block_ids = [wire.block_id(each) for each in request.block_ids]
            copies += await self._copies.adopt(caller.organization_id, agent_id, conversation_id, block_ids)
        return agent_pb.IsolateBlocksResponse(blocks=[block_message(block) for block in copies])

    async def PurgeConversation(
        self, request: agent_pb.PurgeConversationRequest, context: Any
    ) -> agent_pb.PurgeConversationResponse:
        agent_id = wire.agent_id(request.agent_id)
        conversation_id = wire.needed_conversation_id(request.conversation_id)
        await self._copies.purge_conversation(current().organization_id, agent_id, conversation_id)
        return agent_pb.PurgeConversationResponse()

    async def RestoreBlocks(
        self, request: agent_pb.RestoreBlocksRequest, context: Any
    ) -> agent_pb.RestoreBlocksResponse:
        caller = current()
        restore = restore_request(request, caller.organization_id, caller.user_id)
        restored, missing = await self._versions.restore(restore)
        shared = await self._copies.shared_with_others(
            caller.organization_id, restore.agent_id, [block.id for block in restored]
        )
        return agent_pb.RestoreBlocksResponse(
            blocks=[block_message(block) for block in restored],
            missing_block_ids=[to_public("block", block_id) for block_id in missing],
            shared_block_ids=[to_public("block", block_id) for block_id in shared],
        )

    async def CopyBlocks(self, request: agent_pb.CopyBlocksRequest, context: Any) -> agent_pb.CopyBlocksResponse:
        caller = current()
        copies = await self._versions.copy(copy_request(request, caller.organization_id, caller.user_id))
        return agent_pb.CopyBlocksResponse(blocks=[block_message(block) for block in copies])

    async def ShareArchives(
        self, request: agent_pb.ShareArchivesRequest, context: Any
    ) -> agent_pb.ShareArchivesResponse:
        source, target = wire.agent_id(request.source_agent_id), wire.agent_id(request.target_agent_id)
        shared = await self._copies.share_archives(current().organization_id, source, target)
        return agent_pb.ShareArchivesResponse(archive_ids=[to_public("archive", one) for one in shared])

    async def ListBlockEdits(
        self, request: agent_pb.ListBlockEditsRequest, context: Any
    ) -> agent_pb.ListBlockEditsResponse:
        if not 1 <= len(request.run_ids) <= _MOST_RUNS:
            raise InvalidArgument(
                f"ask for 1 to {_MOST_RUNS} runs, not {len(request.run_ids)}", reason="PAGE_SIZE_INVALID"
            )
        run_ids = [from_public("run", text) for text in request.run_ids]
        edits = await self._copies.edits(current().organization_id, run_ids)
        return agent_pb.ListBlockEditsResponse(edits=map(_EDITS.encode, edits))

    async def PurgeOrganization(
        self, request: agent_pb.PurgeOrganizationRequest, context: Any
    ) -> agent_pb.PurgeOrganizationResponse:
        done = await self._store.purge_organization(organization_to_purge())
        return agent_pb.PurgeOrganizationResponse(done=done)


_LONGEST_CALL_KEY = 200


def tool_call(request: agent_pb.ApplyToolRequest, organization_id: UUID, user_id: UUID) -> ToolCall:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    return ToolCall(
        organization_id=organization_id,
        user_id=user_id,
        agent_id=wire.agent_id(request.agent_id),
        run_id=wire.run_id(request.run_id),
        step_id=optional_id("step", request.step_id),
        call_key=_key(request.call_key),
        tool_name=request.tool_name,
        arguments_json=request.arguments_json,
        embedding=storable(request.embedding),
        agent_name=storable(request.agent_name),
        timezone=request.timezone or "UTC",
        conversation_id=wire.conversation_id(request.conversation_id),
        create_missing_block=request.create_missing_block,
        limits=file_limits(request),
    )


def restore_request(request: agent_pb.RestoreBlocksRequest, organization_id: UUID, user_id: UUID) -> RestoreRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    agent, key = wire.agent_id(request.agent_id), _key(request.request_id)
    return RestoreRequest(
        organization_id=organization_id,
        agent_id=agent,
        conversation_id=wire.conversation_id(request.conversation_id),
        versions=versions_by_block(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=agent, run_id=wire.run_id(request.run_id), call_key=key),
    )


def copy_request(request: agent_pb.CopyBlocksRequest, organization_id: UUID, user_id: UUID) -> CopyRequest:
    """Raises InvalidArgument (INVALID_ID, CALL_KEY_INVALID)."""
    target, key = wire.agent_id(request.target_agent_id), _key(request.request_id)
    return CopyRequest(
        organization_id=organization_id,
        source_agent_id=wire.agent_id(request.source_agent_id),
        source_conversation_id=wire.conversation_id(request.source_conversation_id),
        target_agent_id=target,
        versions=versions_by_block(request.versions),
        request_id=key,
        origin=Origin(actor_id=user_id, agent_id=target, call_key=key),
    )


def memory_message(
    memory: AgentMemory, folders: Sequence[Folder] = (), files: Sequence[AgentFile] = ()
) -> agent_pb.AgentMemory:
    """Returns an agent's memory on the wire, in a batch with its folders and their files."""
    return agent_pb.AgentMemory(
        agent_id=to_public("agent", memory.agent_id),
        blocks=[block_message(block) for block in memory.blocks],
        archives=[archive_message(archive) for archive in memory.archives],
        passage_count=memory.passage_count,
        passage_tags=memory.passage_tags,
        isolated_block_ids=[to_public("block", one) for one in memory.isolated_block_ids],
        directories=map(directory_message, memory.directories),
        folders=map(folder_message, folders),
        files=[agent_file_message(memory.agent_id, file) for file in files],
    )


def result_message(result: ToolResult) -> agent_pb.ApplyToolResponse:
    """Returns a tool's result on the wire."""
    return agent_pb.ApplyToolResponse(
        tool_return=result.tool_return,
        is_error=result.is_error,
        changed_blocks=[block_message(block) for block in result.changed_blocks],
    )


def _key(text: str) -> str:
    if not 1 <= len(text) <= _LONGEST_CALL_KEY or "\x00" in text:
        raise InvalidArgument(
            f"a call key has 1 to {_LONGEST_CALL_KEY} characters and no NUL", reason="CALL_KEY_INVALID"
        )
    return text


def versions_by_block(versions: Mapping[str, int]) -> dict[UUID, int]:
    """Returns version by block id. Raises InvalidArgument (INVALID_ID)."""
    return {wire.block_id(text): version for text, version in versions.items()}
