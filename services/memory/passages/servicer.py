"""loci.memory.v1.PassageService."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1 import passage_service_pb2 as passage_service_pb
from loci.memory.v1 import passage_service_pb2_grpc as passage_grpc
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.refusals import Refused
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.core.ports.passages import PassageLists, PassageStore
from services.memory.core.ranking.search import Hit
from services.memory.core.storable import unique_tags, without_nul
from services.memory.passages.model import (
    FilePiece,
    InArchive,
    InFolder,
    OfAgent,
    OfTenant,
    Passage,
    PassageChanges,
    PassageDraft,
    PassageFilter,
    PassageList,
    PassageQuery,
    Place,
    SearchMode,
)
from services.memory.passages.service import PassageService
from services.memory.search.service import PassageSearch

_PASSAGES_PER_PAGE = 100


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
            without_nul(request.embedding),
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
        changes = passage_changes(request.passage, request.update_mask.paths)
        passage = await self._passages.update(caller.organization_id, caller.user_id, place, passage_id, changes)
        return passage_pb.UpdatePassageResponse(passage=passage_message(passage))

    async def DeletePassage(
        self, request: passage_pb.DeletePassageRequest, context: Any
    ) -> passage_pb.DeletePassageResponse:
        place = place_of(agent_id=request.agent_id, archive_id=request.archive_id)
        await self._store.delete(current().organization_id, place, wire.passage_id(request.passage_id))
        return passage_pb.DeletePassageResponse()


def place_of(*, agent_id: str = "", archive_id: str = "", folder_id: str = "") -> Place:
    """Where to look. Raises InvalidArgument (INVALID_ID), Refused (QUERY_INVALID) for more than one id."""
    if sum(map(bool, (agent_id, archive_id, folder_id))) > 1:
        raise Refused("QUERY_INVALID", "give one of agent_id, archive_id and folder_id, or none for the whole tenant")
    if agent_id:
        return OfAgent(wire.agent_id(agent_id))
    if archive_id:
        return InArchive(wire.archive_id(archive_id))
    if folder_id:
        return InFolder(from_public("source", folder_id))
    return OfTenant()


def target(request: passage_service_pb.CreatePassagesRequest) -> OfAgent | InArchive:
    """Where new passages go. Raises InvalidArgument (INVALID_ID), Refused (PASSAGE_INVALID)."""
    if bool(request.agent_id) == bool(request.archive_id):
        raise Refused("PASSAGE_INVALID", "give either agent_id or archive_id")
    return (
        OfAgent(wire.agent_id(request.agent_id)) if request.agent_id else InArchive(wire.archive_id(request.archive_id))
    )


def passage_draft(draft: passage_service_pb.PassageDraft) -> PassageDraft:
    """Raises InvalidArgument (INVALID_ID, TIME_INVALID), Refused (PASSAGE_INVALID)."""
    return PassageDraft(
        id=from_public("passage", draft.id) if draft.id else uuid7(),
        text=draft.text,
        tags=tuple(draft.tags),
        metadata=wire.json_object(draft.metadata_json, "PASSAGE_INVALID"),
        created_at=wire.moment(draft, "created_at"),
        embedding=tuple(draft.embedding),
    )


def passage_changes(draft: passage_service_pb.PassageDraft, paths: Sequence[str]) -> PassageChanges:
    """The fields of a mask. Raises InvalidArgument (UPDATE_MASK_INVALID), Refused (PASSAGE_INVALID)."""
    values = passage_draft(draft)
    changes = PassageChanges()
    for path in paths:
        match path:
            case "text":
                changes["text"] = values.text
            case "tags":
                changes["tags"] = values.tags
            case "metadata_json":
                changes["metadata"] = values.metadata
            case "created_at" if values.created_at is not None:
                changes["created_at"] = values.created_at
            case "created_at":
                raise Refused("PASSAGE_INVALID", "created_at is in the mask but not given")
            case _:
                raise InvalidArgument(
                    f"the field {path!r} of a passage cannot be changed", reason="UPDATE_MASK_INVALID"
                )
    return changes


def passage_list(request: passage_service_pb.ListPassagesRequest) -> PassageList:
    """What a list asks for. Raises as `place`, and InvalidArgument (TIME_INVALID)."""
    return PassageList(
        place=place_of(agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id),
        search=wire.text(request, "search"),
        filter=_filter(request),
    )


def passage_query(request: passage_service_pb.SearchPassagesRequest) -> PassageQuery:
    """What a search asks for. Raises InvalidArgument (TIME_INVALID), Refused (QUERY_INVALID)."""
    try:
        mode = SearchMode(request.mode or SearchMode.HYBRID)
    except ValueError:
        raise Refused("QUERY_INVALID", f"there is no search mode {request.mode}") from None
    return PassageQuery(text=request.query, top_k=request.top_k or 5, mode=mode, filter=_filter(request))


def _filter(request: Any) -> PassageFilter:
    return PassageFilter(
        tags=unique_tags(tuple(request.tags), "QUERY_INVALID"),
        match_all_tags=request.match_all_tags,
        start=wire.moment(request, "start_time"),
        end=wire.moment(request, "end_time"),
    )


def passage_message(passage: Passage) -> passage_pb2.Passage:
    """A passage on the wire."""
    return passage_pb2.Passage(
        id=to_public("passage", passage.id),
        archive_id=to_public("archive", passage.archive_id) if passage.file is None else "",
        text=passage.text,
        tags=passage.tags,
        metadata_json=wire.json_text(passage.metadata),
        created_by_id=to_public("user", passage.created_by_id),
        created_at=timestamp(passage.created_at),
        updated_at=timestamp(passage.updated_at),
        embedding=passage.embedding or "",
        file=None if passage.file is None else _piece(passage.archive_id, passage.file),
        last_updated_by_id=to_public("user", passage.last_updated_by_id),
    )


def _piece(folder_id: UUID, piece: FilePiece) -> passage_pb2.FilePiece:
    return passage_pb2.FilePiece(
        folder_id=to_public("source", folder_id),
        file_id=to_public("file", piece.file_id),
        file_name=piece.file_name,
        place=piece.place,
        first_line=piece.first_line,
        last_line=piece.last_line,
    )


def hit_message(hit: Hit) -> passage_pb2.PassageHit:
    """A found passage on the wire."""
    return passage_pb2.PassageHit(
        passage=passage_message(hit.passage),
        score=hit.score,
        vector_score=hit.vector_score,
        text_score=hit.text_score,
    )
