"""Archives and passages: protobuf to plain values and back."""

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_service_pb
from services.common.ids import from_public, to_public, uuid7
from services.memory.archival.passages import PassageFilter, PassageQuery
from services.memory.archival.search import Hit
from services.memory.convert import fields
from services.memory.model import (
    Archive,
    Passage,
    PassageDraft,
)


def passage_draft(draft: passage_service_pb.PassageDraft) -> PassageDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (PASSAGE_INVALID)."""
    return PassageDraft(
        id=from_public("passage", draft.id) if draft.id else uuid7(),
        text=draft.text,
        tags=tuple(draft.tags),
        metadata=fields.json_object(draft.metadata_json, "PASSAGE_INVALID"),
        created_at=fields.moment(draft, "created_at"),
    )


def passage_query(request: passage_service_pb.SearchPassagesRequest) -> PassageQuery:
    """What a search asks for."""
    return PassageQuery(
        text=request.query,
        top_k=request.top_k or 5,
        filter=PassageFilter(
            tags=tuple(request.tags),
            match_all_tags=request.match_all_tags,
            start=fields.moment(request, "start_time"),
            end=fields.moment(request, "end_time"),
        ),
    )


def archive_message(archive: Archive) -> passage_pb2.Archive:
    """An archive on the wire."""
    return passage_pb2.Archive(
        id=to_public("archive", archive.id),
        name=archive.name,
        description=archive.description,
        embedding="" if archive.model is None else archive.model.handle,
        dimensions=0 if archive.model is None else archive.model.dimensions,
        metadata_json=fields.json_text(archive.metadata),
        created_at=fields.timestamp(archive.created_at),
        updated_at=fields.timestamp(archive.updated_at),
        created_by_id=to_public("user", archive.created_by_id),
    )


def passage_message(passage: Passage) -> passage_pb2.Passage:
    """A passage on the wire."""
    return passage_pb2.Passage(
        id=to_public("passage", passage.id),
        archive_id=to_public("archive", passage.archive_id),
        text=passage.text,
        tags=passage.tags,
        metadata_json=fields.json_text(passage.metadata),
        created_by_id=to_public("user", passage.created_by_id),
        created_at=fields.timestamp(passage.created_at),
        updated_at=fields.timestamp(passage.updated_at),
        embedding=passage.embedding or "",
    )


def hit_message(hit: Hit) -> passage_pb2.PassageHit:
    """A found passage on the wire."""
    return passage_pb2.PassageHit(
        passage=passage_message(hit.passage),
        score=hit.score,
        vector_score=hit.vector_score,
        text_score=hit.text_score,
    )
