"""Passages: protobuf to plain values and back."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_service_pb
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp
from services.memory.core.errors import Refused
from services.memory.core.ranking.search import Hit
from services.memory.core.storable import unique_tags
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
from services.memory.wire import fields, ids


def place(*, agent_id: str = "", archive_id: str = "", folder_id: str = "") -> Place:
    """Where to look. Raises InvalidArgument (INVALID_ID), Refused (QUERY_INVALID) for more than one id."""
    if sum(map(bool, (agent_id, archive_id, folder_id))) > 1:
        raise Refused("QUERY_INVALID", "give one of agent_id, archive_id and folder_id, or none for the whole tenant")
    if agent_id:
        return OfAgent(ids.agent_id(agent_id))
    if archive_id:
        return InArchive(ids.archive_id(archive_id))
    if folder_id:
        return InFolder(from_public("source", folder_id))
    return OfTenant()


def target(request: passage_service_pb.CreatePassagesRequest) -> OfAgent | InArchive:
    """Where new passages go. Raises InvalidArgument (INVALID_ID), Refused (PASSAGE_INVALID)."""
    if bool(request.agent_id) == bool(request.archive_id):
        raise Refused("PASSAGE_INVALID", "give either agent_id or archive_id")
    return (
        OfAgent(ids.agent_id(request.agent_id)) if request.agent_id else InArchive(ids.archive_id(request.archive_id))
    )


def passage_draft(draft: passage_service_pb.PassageDraft) -> PassageDraft:
    """Raises InvalidArgument (INVALID_ID, TIME_INVALID), Refused (PASSAGE_INVALID)."""
    return PassageDraft(
        id=from_public("passage", draft.id) if draft.id else uuid7(),
        text=draft.text,
        tags=tuple(draft.tags),
        metadata=fields.json_object(draft.metadata_json, "PASSAGE_INVALID"),
        created_at=fields.moment(draft, "created_at"),
        embedding=tuple(draft.embedding),
    )


def passage_changes(draft: passage_service_pb.PassageDraft, paths: Sequence[str]) -> PassageChanges:
    """The fields of a mask. Raises InvalidArgument (UPDATE_MASK_INVALID), Refused (PASSAGE_INVALID)."""
    given = passage_draft(draft)
    changes = PassageChanges()
    for path in paths:
        match path:
            case "text":
                changes["text"] = given.text
            case "tags":
                changes["tags"] = given.tags
            case "metadata_json":
                changes["metadata"] = given.metadata
            case "created_at" if given.created_at is not None:
                changes["created_at"] = given.created_at
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
        place=place(agent_id=request.agent_id, archive_id=request.archive_id, folder_id=request.folder_id),
        search=fields.text(request, "search"),
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
        start=fields.moment(request, "start_time"),
        end=fields.moment(request, "end_time"),
    )


def passage_message(passage: Passage) -> passage_pb2.Passage:
    """A passage on the wire."""
    return passage_pb2.Passage(
        id=to_public("passage", passage.id),
        archive_id=to_public("archive", passage.archive_id) if passage.file is None else "",
        text=passage.text,
        tags=passage.tags,
        metadata_json=fields.json_text(passage.metadata),
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
