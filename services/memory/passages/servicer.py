"""loci.memory.v1.PassageService."""

from dataclasses import replace
from typing import Any

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1 import passage_service_pb2_grpc as passage_grpc
from services.common.codec import Codec
from services.common.context import current
from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.common.ids import from_public, to_public, uuid7
from services.common.page_requests import page_by_id
from services.memory import wire
from services.memory.core.ports.passages import PassageLists, PassageStore
from services.memory.core.ranking.search import Hit
from services.memory.core.rules import unique_tags
from services.memory.passages.model import (
    InArchive,
    InFolder,
    OfAgent,
    OfTenant,
    Passage,
    PassageDraft,
    PassageFilter,
    PassageList,
    PassageQuery,
    PassageSettings,
    Place,
    SearchMode,
)
from services.memory.passages.service import PassageService
from services.memory.search.service import PassageSearch

_PASSAGES_PER_PAGE = 100

_PASSAGES = Codec(Passage, passage_pb2.Passage, leave=("archive_id",))
_DRAFTS = wire.settings(PassageDraft, passage_pb.PassageDraft, "PASSAGE_INVALID", leave=("id",))
_SETTINGS = wire.settings(PassageSettings, passage_pb.PassageDraft, "PASSAGE_INVALID")


class PassageServicer(passage_grpc.PassageServiceServicer):
    """loci.memory.v1.PassageService."""

    def __init__(
        self, store: PassageStore, passages: PassageService, search: PassageSearch, lists: PassageLists
    ) -> None:
        self._store = store
        self._passages = passages
        self._search = search
        self._lists = lists

    async def ListPassages(
        self, request: passage_pb.ListPassagesRequest, context: Any
    ) -> passage_pb.ListPassagesResponse:
        filters, page = (
            passage_list(request),
            page_by_id(request.page, "passage", _PASSAGES_PER_PAGE, ascending=True),
        )
        result = await self._lists.passages(current().organization_id, filters, page)
        return passage_pb.ListPassagesResponse(
            passages=[passage_message(passage) for passage in result.items],
            next_page_token=result.next_token,
        )

    async def GetVectorStorage(
        self, request: passage_pb.GetVectorStorageRequest, context: Any
    ) -> passage_pb.GetVectorStorageResponse:
        vectors, size = await self._lists.storage(current().organization_id)
        return passage_pb.GetVectorStorageResponse(vectors=vectors, bytes=size)

    async def SearchPassages(
        self, request: passage_pb.SearchPassagesRequest, context: Any
    ) -> passage_pb.SearchPassagesResponse:
        place = place_of(agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id)
        query = passage_query(request)
        result = await self._search.search(current().organization_id, place, query)
        return passage_pb.SearchPassagesResponse(
            hits=[hit_message(hit) for hit in result.hits], without_vectors=result.without_vectors
        )

    async def CreatePassages(
        self, request: passage_pb.CreatePassagesRequest, context: Any
    ) -> passage_pb.CreatePassagesResponse:
        caller = current()
        passages = await self._passages.insert(
            caller.organization_id,
            caller.user_id,
            target(request),
            [passage_draft(draft) for draft in request.passages],
            storable(request.embedding),
            agent_name=storable(request.agent_name),
        )
        return passage_pb.CreatePassagesResponse(passages=[passage_message(one) for one in passages])

    async def GetPassage(self, request: passage_pb.GetPassageRequest, context: Any) -> passage_pb.GetPassageResponse:
        place = place_of(agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id)
        passage = await self._store.get(current().organization_id, place, wire.passage_id(request.passage_id))
        return passage_pb.GetPassageResponse(passage=passage_message(passage))

    async def UpdatePassage(
        self, request: passage_pb.UpdatePassageRequest, context: Any
    ) -> passage_pb.UpdatePassageResponse:
        caller, passage_id = current(), wire.passage_id(request.passage_id)
        place = place_of(agent_id=request.agent_id, archive_id=request.archive_id)
        changes = wire.changes(_SETTINGS, request.passage, request.update_mask.paths)
        passage = await self._passages.update(caller.organization_id, caller.user_id, place, passage_id, changes)
        return passage_pb.UpdatePassageResponse(passage=passage_message(passage))

    async def DeletePassage(
        self, request: passage_pb.DeletePassageRequest, context: Any
    ) -> passage_pb.DeletePassageResponse:
        place = place_of(agent_id=request.agent_id, archive_id=request.archive_id)
        await self._store.delete(current().organization_id, place, wire.passage_id(request.passage_id))
        return passage_pb.DeletePassageResponse()


def place_of(*, agent_id: str = "", archive_id: str = "", folder_id: str = "") -> Place:
    """Returns where to look. Raises InvalidArgument (INVALID_ID), Refused (QUERY_INVALID) for more than one id."""
    if sum(map(bool, (agent_id, archive_id, folder_id))) > 1:
        raise Refused("QUERY_INVALID", "give one of agent_id, archive_id and folder_id, or none for the whole tenant")
    if agent_id:
        return OfAgent(wire.agent_id(agent_id))
    if archive_id:
        return InArchive(wire.archive_id(archive_id))
    if folder_id:
        return InFolder(from_public("source", folder_id))
    return OfTenant()


def target(request: passage_pb.CreatePassagesRequest) -> OfAgent | InArchive:
    """Returns where new passages go. Raises InvalidArgument (INVALID_ID), Refused (PASSAGE_INVALID)."""
    if bool(request.agent_id) == bool(request.archive_id):
        raise Refused("PASSAGE_INVALID", "give either agent_id or archive_id")
    return (
        OfAgent(wire.agent_id(request.agent_id)) if request.agent_id else InArchive(wire.archive_id(request.archive_id))
    )


def passage_draft(draft: passage_pb.PassageDraft) -> PassageDraft:
    """Returns a passage to create. Raises InvalidArgument (INVALID_ID, TIME_INVALID), Refused (PASSAGE_INVALID)."""
    return _DRAFTS.decode(draft, id=wire.passage_id(draft.id) if draft.id else uuid7())


def passage_list(request: passage_pb.ListPassagesRequest) -> PassageList:
    """Returns what a list asks for. Raises as `place_of`, and InvalidArgument (TIME_INVALID)."""
    return PassageList(
        place=place_of(agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id),
        search=wire.text(request, "search"),
        filter=replace(_filter(request), history=not request.current),
    )


def passage_query(request: passage_pb.SearchPassagesRequest) -> PassageQuery:
    """Returns what a search asks for. Raises InvalidArgument (TIME_INVALID), Refused (QUERY_INVALID)."""
    try:
        mode = SearchMode(request.mode or SearchMode.HYBRID)
    except ValueError:
        raise Refused("QUERY_INVALID", f"there is no search mode {request.mode}") from None
    return PassageQuery(
        text=request.query,
        top_k=request.top_k or 5,
        mode=mode,
        context=request.context,
        filter=replace(_filter(request), history=request.history),
    )


def _filter(request: Any) -> PassageFilter:
    return PassageFilter(
        tags=unique_tags(tuple(request.tags), "QUERY_INVALID"),
        match_all_tags=request.match_all_tags,
        start=wire.moment(request, "start_time"),
        end=wire.moment(request, "end_time"),
        as_of=wire.moment(request, "as_of"),
    )


def passage_message(passage: Passage) -> passage_pb2.Passage:
    """Returns a passage on the wire; a piece of a file has no archive there."""
    archive_id = to_public("archive", passage.archive_id) if passage.file is None else ""
    return _PASSAGES.encode(passage, archive_id=archive_id)


def hit_message(hit: Hit) -> passage_pb2.PassageHit:
    """Returns a found passage on the wire."""
    return passage_pb2.PassageHit(
        passage=passage_message(hit.passage),
        score=hit.score,
        vector_score=hit.vector_score,
        text_score=hit.text_score,
        before=map(passage_message, hit.before),
        after=map(passage_message, hit.after),
    )
