"""loci.memory.v1.AgentMemoryService."""

from typing import Any

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import agent_memory_service_pb2_grpc as agent_grpc
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.purging import organization_to_purge
from services.memory.agent_tools.service import Tools
from services.memory.agents import convert
from services.memory.agents.service import Versions
from services.memory.blocks.convert import block_draft, block_message
from services.memory.blocks.model import checked_draft
from services.memory.core.ports.agent_files import AgentFileStore
from services.memory.core.ports.agents import AgentStore, CopyStore
from services.memory.core.storable import without_nul
from services.memory.wire import ids
from services.memory.wire.refusals import refusals

_MOST_AGENTS = _MOST_RUNS = 1_000


class AgentMemoryServicer(agent_grpc.AgentMemoryServiceServicer):
    """loci.memory.v1.AgentMemoryService."""

    def __init__(
        self, store: AgentStore, tools: Tools, copies: CopyStore, versions: Versions, agent_files: AgentFileStore
    ) -> None:
        self._store = store
        self._tools = tools
        self._copies = copies
        self._versions = versions
        self._agent_files = agent_files

    async def GetAgentMemory(
        self, request: agent_pb.GetAgentMemoryRequest, context: Any
    ) -> agent_pb.GetAgentMemoryResponse:
        conversation_id = ids.conversation_id(request.conversation_id)
        memory = await self._store.memory(current().organization_id, ids.agent_id(request.agent_id), conversation_id)
        return agent_pb.GetAgentMemoryResponse(memory=convert.memory_message(memory))

    async def BatchGetAgentMemory(
        self, request: agent_pb.BatchGetAgentMemoryRequest, context: Any
    ) -> agent_pb.BatchGetAgentMemoryResponse:
        if not 1 <= len(request.agent_ids) <= _MOST_AGENTS:
            raise InvalidArgument(
                f"ask for 1 to {_MOST_AGENTS} agents, not {len(request.agent_ids)}",
                reason="PAGE_SIZE_INVALID",
            )
        agent_ids = [ids.agent_id(text) for text in request.agent_ids]
        memories = await self._store.memories(current().organization_id, agent_ids)
        folders = await self._agent_files.folders(current().organization_id, agent_ids)
        return agent_pb.BatchGetAgentMemoryResponse(
            memories=[convert.memory_message(memory, folders.get(memory.agent_id, ())) for memory in memories]
        )

    async def CreateAgentMemory(
        self, request: agent_pb.CreateAgentMemoryRequest, context: Any
    ) -> agent_pb.CreateAgentMemoryResponse:
        caller = current()
        agent_id = ids.agent_id(request.agent_id)
        with refusals():
            drafts = [checked_draft(block_draft(draft, id_needed=True)) for draft in request.blocks]
        block_ids = [ids.block_id(text) for text in request.block_ids]
        await self._store.create(caller.organization_id, caller.user_id, agent_id, drafts, block_ids)
        memory = await self._store.memory(caller.organization_id, agent_id)
        return agent_pb.CreateAgentMemoryResponse(memory=convert.memory_message(memory))

    async def ApplyTool(self, request: agent_pb.ApplyToolRequest, context: Any) -> agent_pb.ApplyToolResponse:
        caller = current()
        call = convert.tool_call(request, caller.organization_id, caller.user_id)
        return convert.result_message(await self._tools.apply(call))

    async def PurgeAgent(self, request: agent_pb.PurgeAgentRequest, context: Any) -> agent_pb.PurgeAgentResponse:
        agent_id = ids.agent_id(request.agent_id)
        await self._store.purge(current().organization_id, agent_id, erase_blocks=request.erase_blocks)
        return agent_pb.PurgeAgentResponse()

    async def IsolateBlocks(
        self, request: agent_pb.IsolateBlocksRequest, context: Any
    ) -> agent_pb.IsolateBlocksResponse:
        caller = current()
        agent_id = ids.agent_id(request.agent_id)
        conversation_id = ids.needed_conversation_id(request.conversation_id)
        copies = await self._copies.isolate(
            caller.organization_id,
            caller.user_id,
            agent_id,
            conversation_id,
            list(dict.fromkeys(without_nul(label) for label in request.labels)),
            ids.conversation_id(request.source_conversation_id),
            convert.versions(request.versions),
        )
        if request.block_ids:
            block_ids = [ids.block_id(each) for each in request.block_ids]
            copies += await self._copies.adopt(caller.organization_id, agent_id, conversation_id, block_ids)
        return agent_pb.IsolateBlocksResponse(blocks=[block_message(block) for block in copies])

    async def PurgeConversation(
        self, request: agent_pb.PurgeConversationRequest, context: Any
    ) -> agent_pb.PurgeConversationResponse:
        agent_id = ids.agent_id(request.agent_id)
        conversation_id = ids.needed_conversation_id(request.conversation_id)
        await self._copies.purge_conversation(current().organization_id, agent_id, conversation_id)
        return agent_pb.PurgeConversationResponse()

    async def RestoreBlocks(
        self, request: agent_pb.RestoreBlocksRequest, context: Any
    ) -> agent_pb.RestoreBlocksResponse:
        caller = current()
        asked = convert.restore_request(request, caller.organization_id, caller.user_id)
        restored, missing = await self._versions.restore(asked)
        shared = await self._copies.of_other_agents(
            caller.organization_id, asked.agent_id, [block.id for block in restored]
        )
        return agent_pb.RestoreBlocksResponse(
            blocks=[block_message(block) for block in restored],
            missing_block_ids=[to_public("block", block_id) for block_id in missing],
            shared_block_ids=[to_public("block", block_id) for block_id in shared],
        )

    async def CopyBlocks(self, request: agent_pb.CopyBlocksRequest, context: Any) -> agent_pb.CopyBlocksResponse:
        caller = current()
        made = await self._versions.copy(convert.copy_request(request, caller.organization_id, caller.user_id))
        return agent_pb.CopyBlocksResponse(blocks=[block_message(block) for block in made])

    async def ShareArchives(
        self, request: agent_pb.ShareArchivesRequest, context: Any
    ) -> agent_pb.ShareArchivesResponse:
        source, target = ids.agent_id(request.source_agent_id), ids.agent_id(request.target_agent_id)
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
        found = await self._copies.edits(current().organization_id, run_ids)
        return agent_pb.ListBlockEditsResponse(edits=map(convert.edit_message, found))

    async def PurgeOrganization(
        self, request: agent_pb.PurgeOrganizationRequest, context: Any
    ) -> agent_pb.PurgeOrganizationResponse:
        done = await self._store.purge_organization(organization_to_purge())
        return agent_pb.PurgeOrganizationResponse(done=done)
