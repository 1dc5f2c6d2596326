"""loci.memory.v1.PassageService."""

from typing import Any

from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1 import passage_service_pb2_grpc as passage_grpc
from services.common.context import current
from services.memory.archival.archive import Archival
from services.memory.convert import fields, ids, passages
from services.memory.core.blocks import without_nul
from services.memory.lists import PassageList
from services.memory.ports import Lists, PassageStore
from services.memory.servicer.refusals import refusals

_PASSAGES_PER_PAGE = 100


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
        wanted = PassageList(agent_id=ids.agent_id(request.agent_id), search=search)
        with refusals():
            page = fields.page(request, "passage", _PASSAGES_PER_PAGE)
            found = await self._lists.passages(current().organization_id, wanted, page)
        return passage_pb.ListPassagesResponse(
            passages=[passages.passage_message(passage) for passage in found.items],
            next_page_token=found.next_token,
        )

    async def SearchPassages(
        self, request: passage_pb.SearchPassagesRequest, context: Any
    ) -> passage_pb.SearchPassagesResponse:
        agent_id = ids.agent_id(request.agent_id)
        with refusals():
            found = await self._archival.search(current().organization_id, agent_id, passages.passage_query(request))
        return passage_pb.SearchPassagesResponse(hits=[passages.hit_message(hit) for hit in found.hits])

    async def CreatePassages(
        self, request: passage_pb.CreatePassagesRequest, context: Any
    ) -> passage_pb.CreatePassagesResponse:
        caller = current()
        agent_id = ids.agent_id(request.agent_id)
        with refusals():
            stored = await self._archival.insert(
                caller.organization_id,
                caller.user_id,
                agent_id,
                [passages.passage_draft(draft) for draft in request.passages],
                without_nul(request.embedding),
            )
        return passage_pb.CreatePassagesResponse(passages=[passages.passage_message(one) for one in stored])

    async def DeletePassage(
        self, request: passage_pb.DeletePassageRequest, context: Any
    ) -> passage_pb.DeletePassageResponse:
        agent_id, passage_id = ids.agent_id(request.agent_id), ids.passage_id(request.passage_id)
        await self._store.delete(current().organization_id, agent_id, passage_id)
        return passage_pb.DeletePassageResponse()
