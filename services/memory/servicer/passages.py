"""loci.memory.v1.PassageService."""

from typing import Any

from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1 import passage_service_pb2_grpc as passage_grpc
from services.common.context import current
from services.common.page_requests import page_by_id
from services.memory.archival.archive import Archival
from services.memory.archival.ports import ArchivalLists, PassageStore
from services.memory.convert import ids, passages
from services.memory.core.blocks import without_nul
from services.memory.servicer.refusals import refusals

_PASSAGES_PER_PAGE = 100


class PassageServicer(passage_grpc.PassageServiceServicer):
    """loci.memory.v1.PassageService."""

    def __init__(self, store: PassageStore, archival: Archival, lists: ArchivalLists) -> None:
        self._store = store
        self._archival = archival
        self._lists = lists

    async def ListPassages(
        self, request: passage_pb.ListPassagesRequest, context: Any
    ) -> passage_pb.ListPassagesResponse:
        with refusals():
            wanted, page = (
                passages.passage_list(request),
                page_by_id(request.page, "passage", _PASSAGES_PER_PAGE, ascending=True),
            )
            found = await self._lists.passages(current().organization_id, wanted, page)
        return passage_pb.ListPassagesResponse(
            passages=[passages.passage_message(passage) for passage in found.items],
            next_page_token=found.next_token,
        )

    async def GetVectorStorage(
        self, request: passage_pb.GetVectorStorageRequest, context: Any
    ) -> passage_pb.GetVectorStorageResponse:
        vectors, size = await self._lists.storage(current().organization_id)
        return passage_pb.GetVectorStorageResponse(vectors=vectors, bytes=size)

    async def SearchPassages(
        self, request: passage_pb.SearchPassagesRequest, context: Any
    ) -> passage_pb.SearchPassagesResponse:
        with refusals():
            place = passages.place(
                agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id
            )
            query = passages.passage_query(request)
            found = await self._archival.search(current().organization_id, place, query)
        return passage_pb.SearchPassagesResponse(
            hits=[passages.hit_message(hit) for hit in found.hits], without_vectors=found.without_vectors
        )

    async def CreatePassages(
        self, request: passage_pb.CreatePassagesRequest, context: Any
    ) -> passage_pb.CreatePassagesResponse:
        caller = current()
        with refusals():
            stored = await self._archival.insert(
                caller.organization_id,
                caller.user_id,
                passages.target(request),
                [passages.passage_draft(draft) for draft in request.passages],
                without_nul(request.embedding),
            )
        return passage_pb.CreatePassagesResponse(passages=[passages.passage_message(one) for one in stored])

    async def GetPassage(self, request: passage_pb.GetPassageRequest, context: Any) -> passage_pb.GetPassageResponse:
        with refusals():
            place = passages.place(
                agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id
            )
        passage = await self._store.get(current().organization_id, place, ids.passage_id(request.passage_id))
        return passage_pb.GetPassageResponse(passage=passages.passage_message(passage))

    async def UpdatePassage(
        self, request: passage_pb.UpdatePassageRequest, context: Any
    ) -> passage_pb.UpdatePassageResponse:
        caller, passage_id = current(), ids.passage_id(request.passage_id)
        with refusals():
            place = passages.place(agent_id=request.agent_id, archive_id=request.archive_id)
            changes = passages.passage_changes(request.passage, request.update_mask.paths)
            passage = await self._archival.update(caller.organization_id, caller.user_id, place, passage_id, changes)
        return passage_pb.UpdatePassageResponse(passage=passages.passage_message(passage))

    async def DeletePassage(
        self, request: passage_pb.DeletePassageRequest, context: Any
    ) -> passage_pb.DeletePassageResponse:
        with refusals():
            place = passages.place(agent_id=request.agent_id, archive_id=request.archive_id)
        await self._store.delete(current().organization_id, place, ids.passage_id(request.passage_id))
        return passage_pb.DeletePassageResponse()
