"""The gRPC methods: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import agent_memory_service_pb2_grpc as agent_grpc
from loci.memory.v1 import block_service_pb2 as block_pb
from loci.memory.v1 import block_service_pb2_grpc as block_grpc
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1 import passage_service_pb2_grpc as passage_grpc
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.paging import Page
from services.memory import convert
from services.memory.archival import Archival
from services.memory.blocks import checked_draft, without_nul
from services.memory.edits import Conflicts, update_block
from services.memory.lists import PassageList, checked_size
from services.memory.model import Refused
from services.memory.ports import AgentStore, BlockStore, Lists, PassageStore
from services.memory.tools import Tools

_MOST_AGENTS = 1_000
_BLOCKS_PER_PAGE = 50
_PASSAGES_PER_PAGE = 100


@contextmanager
def _refusals() -> Iterator[None]:
    """What breaks a rule is the caller's fault."""
    try:
        yield
    except Refused as refused:
        raise InvalidArgument(refused.message, reason=refused.reason) from None


class BlockServicer(block_grpc.BlockServiceServicer):
    """loci.memory.v1.BlockService."""

    def __init__(self, store: BlockStore, lists: Lists, conflicts: Conflicts) -> None:
        self._store = store
        self._lists = lists
        self._conflicts = conflicts

    async def GetBlock(self, request: block_pb.GetBlockRequest, context: Any) -> block_pb.GetBlockResponse:
        block = await self._store.get(current().organization_id, convert.block_key(request.key))
        return block_pb.GetBlockResponse(block=convert.block_message(block))

    async def ListBlocks(self, request: block_pb.ListBlocksRequest, context: Any) -> block_pb.ListBlocksResponse:
        with _refusals():
            page = convert.page(request, "block", _BLOCKS_PER_PAGE)
            found = await self._lists.blocks(current().organization_id, convert.block_list(request), page)
        return block_pb.ListBlocksResponse(
            blocks=[convert.block_message(block) for block in found.items], next_page_token=found.next_token
        )

    async def CreateBlock(self, request: block_pb.CreateBlockRequest, context: Any) -> block_pb.CreateBlockResponse:
        caller = current()
        with _refusals():
            draft = checked_draft(convert.block_draft(request.block))
        block = await self._store.create(caller.organization_id, caller.user_id, draft)
        return block_pb.CreateBlockResponse(block=convert.block_message(block))

    async def UpdateBlock(self, request: block_pb.UpdateBlockRequest, context: Any) -> block_pb.UpdateBlockResponse:
        caller = current()
        with _refusals():
            block = await update_block(
                self._store,
                self._conflicts,
                caller.organization_id,
                caller.user_id,
                convert.block_key(request.key),
                convert.block_changes(request.block, request.update_mask.paths),
                request.expected_version if request.HasField("expected_version") else None,
            )
        return block_pb.UpdateBlockResponse(block=convert.block_message(block))

    async def DeleteBlock(self, request: block_pb.DeleteBlockRequest, context: Any) -> block_pb.DeleteBlockResponse:
        await self._store.delete(current().organization_id, convert.block_id(request.block_id))
        return block_pb.DeleteBlockResponse()

    async def AttachBlock(self, request: block_pb.AttachBlockRequest, context: Any) -> block_pb.AttachBlockResponse:
        agent_id, block_id = convert.agent_id(request.agent_id), convert.block_id(request.block_id)
        await self._store.attach(current().organization_id, agent_id, block_id)
        return block_pb.AttachBlockResponse()

    async def DetachBlock(self, request: block_pb.DetachBlockRequest, context: Any) -> block_pb.DetachBlockResponse:
        agent_id, block_id = convert.agent_id(request.agent_id), convert.block_id(request.block_id)
        await self._store.detach(current().organization_id, agent_id, block_id)
        return block_pb.DetachBlockResponse()

    async def ListBlockAgents(
        self, request: block_pb.ListBlockAgentsRequest, context: Any
    ) -> block_pb.ListBlockAgentsResponse:
        agents = await self._store.agents_of(current().organization_id, convert.block_id(request.block_id))
        return block_pb.ListBlockAgentsResponse(agent_ids=[f"agent-{agent_id}" for agent_id in agents])

    async def ListBlockVersions(
        self, request: block_pb.ListBlockVersionsRequest, context: Any
    ) -> block_pb.ListBlockVersionsResponse:
        with _refusals():
            page = Page(size=checked_size(request.page_size, _BLOCKS_PER_PAGE), token=request.page_token)
            found = await self._lists.versions(current().organization_id, convert.block_id(request.block_id), page)
        return block_pb.ListBlockVersionsResponse(
            versions=[convert.version_message(version) for version in found.items],
            next_page_token=found.next_token,
        )


class AgentMemoryServicer(agent_grpc.AgentMemoryServiceServicer):
    """loci.memory.v1.AgentMemoryService."""

    def __init__(self, store: AgentStore, tools: Tools) -> None:
        self._store = store
        self._tools = tools

    async def GetAgentMemory(
        self, request: agent_pb.GetAgentMemoryRequest, context: Any
    ) -> agent_pb.GetAgentMemoryResponse:
        memory = await self._store.memory(current().organization_id, convert.agent_id(request.agent_id))
        return agent_pb.GetAgentMemoryResponse(memory=convert.memory_message(memory))

    async def BatchGetAgentMemory(
        self, request: agent_pb.BatchGetAgentMemoryRequest, context: Any
    ) -> agent_pb.BatchGetAgentMemoryResponse:
        if not 1 <= len(request.agent_ids) <= _MOST_AGENTS:
            raise InvalidArgument(
                f"ask for 1 to {_MOST_AGENTS} agents, not {len(request.agent_ids)}",
                reason="PAGE_SIZE_INVALID",
            )
        agent_ids = [convert.agent_id(text) for text in request.agent_ids]
        memories = await self._store.memories(current().organization_id, agent_ids)
        return agent_pb.BatchGetAgentMemoryResponse(memories=[convert.memory_message(memory) for memory in memories])

    async def CreateAgentMemory(
        self, request: agent_pb.CreateAgentMemoryRequest, context: Any
    ) -> agent_pb.CreateAgentMemoryResponse:
        caller = current()
        agent_id = convert.agent_id(request.agent_id)
        with _refusals():
            drafts = [checked_draft(convert.block_draft(draft, id_needed=True)) for draft in request.blocks]
        block_ids = [convert.block_id(text) for text in request.block_ids]
        await self._store.create(caller.organization_id, caller.user_id, agent_id, drafts, block_ids)
        memory = await self._store.memory(caller.organization_id, agent_id)
        return agent_pb.CreateAgentMemoryResponse(memory=convert.memory_message(memory))

    async def ApplyTool(self, request: agent_pb.ApplyToolRequest, context: Any) -> agent_pb.ApplyToolResponse:
        caller = current()
        call = convert.tool_call(request, caller.organization_id, caller.user_id)
        return convert.result_message(await self._tools.apply(call))

    async def PurgeAgent(self, request: agent_pb.PurgeAgentRequest, context: Any) -> agent_pb.PurgeAgentResponse:
        agent_id = convert.agent_id(request.agent_id)
        await self._store.purge(current().organization_id, agent_id, erase_blocks=request.erase_blocks)
        return agent_pb.PurgeAgentResponse()


class PassageServicer(passage_grpc.PassageServiceServicer):
    """loci.memory.v1.PassageService."""

    def __init__(self, store: PassageStore, archival: Archival, lists: Lists) -> None:
        self._store = store
        self._archival = archival
        self._lists = lists

    async def ListPassages(
        self, request: passage_pb.ListPassagesRequest, context: Any
    ) -> passage_pb.ListPassagesResponse:
        search = without_nul(request.search) if request.HasField("search") else None
        wanted = PassageList(agent_id=convert.agent_id(request.agent_id), search=search)
        with _refusals():
            page = convert.page(request, "passage", _PASSAGES_PER_PAGE)
            found = await self._lists.passages(current().organization_id, wanted, page)
        return passage_pb.ListPassagesResponse(
            passages=[convert.passage_message(passage) for passage in found.items],
            next_page_token=found.next_token,
        )

    async def SearchPassages(
        self, request: passage_pb.SearchPassagesRequest, context: Any
    ) -> passage_pb.SearchPassagesResponse:
        agent_id = convert.agent_id(request.agent_id)
        with _refusals():
            found = await self._archival.search(current().organization_id, agent_id, convert.passage_query(request))
        return passage_pb.SearchPassagesResponse(hits=[convert.hit_message(hit) for hit in found.hits])

    async def CreatePassages(
        self, request: passage_pb.CreatePassagesRequest, context: Any
    ) -> passage_pb.CreatePassagesResponse:
        caller = current()
        agent_id = convert.agent_id(request.agent_id)
        with _refusals():
            stored = await self._archival.insert(
                caller.organization_id,
                caller.user_id,
                agent_id,
                [convert.passage_draft(draft) for draft in request.passages],
                without_nul(request.embedding),
            )
        return passage_pb.CreatePassagesResponse(passages=[convert.passage_message(one) for one in stored])

    async def DeletePassage(
        self, request: passage_pb.DeletePassageRequest, context: Any
    ) -> passage_pb.DeletePassageResponse:
        agent_id, passage_id = convert.agent_id(request.agent_id), convert.passage_id(request.passage_id)
        await self._store.delete(current().organization_id, agent_id, passage_id)
        return passage_pb.DeletePassageResponse()
