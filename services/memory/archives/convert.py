"""Archives: protobuf to plain values and back."""

from collections.abc import Sequence

from loci.memory.v1 import archive_service_pb2 as archive_service_pb
from loci.memory.v1 import passage_pb2
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp
from services.memory.archives.model import Archive, ArchiveChanges, ArchiveDraft, ArchiveList
from services.memory.core.storable import without_nul
from services.memory.wire import fields, ids


def archive_draft(draft: archive_service_pb.ArchiveDraft) -> ArchiveDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (ARCHIVE_INVALID)."""
    return ArchiveDraft(
        id=from_public("archive", draft.id) if draft.id else uuid7(),
        name=draft.name,
        description=fields.text(draft, "description"),
        embedding=without_nul(draft.embedding),
        metadata=fields.json_object(draft.metadata_json, "ARCHIVE_INVALID"),
        dimensions=draft.dimensions,
    )


def archive_changes(draft: archive_service_pb.ArchiveDraft, paths: Sequence[str]) -> ArchiveChanges:
    """The fields of a mask. Raises InvalidArgument (UPDATE_MASK_INVALID), Refused (ARCHIVE_INVALID)."""
    changes = ArchiveChanges()
    for path in paths:
        match path:
            case "name":
                changes["name"] = draft.name
            case "description":
                changes["description"] = fields.text(draft, "description")
            case "metadata_json":
                changes["metadata"] = fields.json_object(draft.metadata_json, "ARCHIVE_INVALID")
            case _:
                raise InvalidArgument(
                    f"the field {path!r} of an archive cannot be changed here", reason="UPDATE_MASK_INVALID"
                )
    return changes


def archive_list(request: archive_service_pb.ListArchivesRequest) -> ArchiveList:
    """What a list asks for. Raises InvalidArgument (INVALID_ID)."""
    return ArchiveList(
        name=fields.text(request, "name"),
        agent_id=ids.agent_id(request.agent_id) if request.HasField("agent_id") else None,
    )


def archive_message(archive: Archive) -> passage_pb2.Archive:
    """An archive on the wire."""
    return passage_pb2.Archive(
        id=to_public("archive", archive.id),
        name=archive.name,
        description=archive.description,
        embedding=archive.embedding or "",
        dimensions=0 if archive.model is None else archive.model.dimensions,
        metadata_json=fields.json_text(archive.metadata),
        created_at=timestamp(archive.created_at),
        updated_at=timestamp(archive.updated_at),
        created_by_id=to_public("user", archive.created_by_id),
        last_updated_by_id=to_public("user", archive.last_updated_by_id),
        passage_count=archive.passage_count,
    )
