"""Folders: protobuf to plain values and back."""

from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.core.errors import Refused
from services.memory.folders.model import Folder, FolderChanges, FolderDraft
from services.memory.wire import json_text

_REASON = "FOLDER_INVALID"
_CHANGEABLE = ("name", "description", "instructions", "metadata_json")


def folder_draft(draft: folder_service_pb2.FolderDraft) -> FolderDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (FOLDER_INVALID)."""
    return FolderDraft(
        id=from_public("source", draft.id) if draft.id else uuid7(),
        name=draft.name,
        description=draft.description if draft.HasField("description") else None,
        instructions=draft.instructions if draft.HasField("instructions") else None,
        metadata=wire.json_object(draft.metadata_json, _REASON),
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
                changes["metadata"] = wire.json_object(draft.metadata_json, _REASON)
            case _:
                raise Refused(_REASON, f"{path!r} cannot be changed; of a folder, {', '.join(_CHANGEABLE)} can")
    return changes


def folder_message(folder: Folder) -> folder_pb2.Folder:
    """A folder on the wire."""
    return folder_pb2.Folder(
        id=to_public("source", folder.id),
        name=folder.name,
        description=folder.description,
        instructions=folder.instructions,
        metadata_json=json_text(folder.metadata),
        embedding=folder.embedding,
        file_count=folder.file_count,
        created_by_id=to_public("user", folder.created_by_id),
        last_updated_by_id=to_public("user", folder.last_updated_by_id),
        created_at=timestamp(folder.created_at),
        updated_at=timestamp(folder.updated_at),
    )
