"""Folders and files: protobuf to plain values and back."""

from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp
from services.memory.convert import fields
from services.memory.files.model import File, FolderChanges, FolderDraft, OnDuplicate
from services.memory.files.uploads import Incoming
from services.memory.model import Refused

_REASON = "FOLDER_INVALID"
_CHANGEABLE = ("name", "description", "instructions", "metadata_json")


def folder_draft(draft: folder_service_pb2.FolderDraft) -> FolderDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (FOLDER_INVALID)."""
    return FolderDraft(
        id=from_public("source", draft.id) if draft.id else uuid7(),
        name=draft.name,
        description=draft.description if draft.HasField("description") else None,
        instructions=draft.instructions if draft.HasField("instructions") else None,
        metadata=fields.json_object(draft.metadata_json, _REASON),
        embedding=draft.embedding,
    )


def folder_changes(request: folder_service_pb2.UpdateFolderRequest) -> FolderChanges:
    """The fields of the mask. Raises Refused (FOLDER_INVALID)."""
    changes, draft = FolderChanges(), request.folder
    for path in request.update_mask.paths:
        match path:
            case "name":
                changes["name"] = draft.name
            case "description":
                changes["description"] = draft.description if draft.HasField("description") else None
            case "instructions":
                changes["instructions"] = draft.instructions if draft.HasField("instructions") else None
            case "metadata_json":
                changes["metadata"] = fields.json_object(draft.metadata_json, _REASON)
            case _:
                raise Refused(_REASON, f"{path!r} cannot be changed; of a folder, {', '.join(_CHANGEABLE)} can")
    return changes


def incoming(header: folder_service_pb2.UploadHeader) -> Incoming:
    """Raises InvalidArgument (INVALID_ID)."""
    return Incoming(
        file_id=from_public("file", header.file_id) if header.file_id else uuid7(),
        folder_id=from_public("source", header.folder_id),
        name=header.name,
        media_type=header.media_type,
        on_duplicate=OnDuplicate(header.on_duplicate or OnDuplicate.SUFFIX),
        is_retry=header.is_retry,
        is_text=header.is_text,
    )


def file_message(file: File, content: str | None = None) -> folder_pb2.File:
    """A file on the wire."""
    return folder_pb2.File(
        id=to_public("file", file.id),
        folder_id=to_public("source", file.folder_id),
        name=file.path,
        original_name=file.original_name,
        media_type=file.media_type,
        size=file.size,
        status=int(file.status),  # type: ignore[arg-type] # the numbers are the same
        error=file.error or "",
        total_chunks=file.chunk_count,
        chunks_embedded=file.embedded_count,
        line_count=file.line_count,
        char_count=file.char_count,
        content=content,
        created_at=timestamp(file.created_at),
        updated_at=timestamp(file.updated_at),
        created_by_id=to_public("user", file.created_by_id),
    )
