"""Folders on the wire, as several servicers send them."""

from loci.memory.v1 import folder_pb2
from services.common.ids import to_public
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.folders.model import Folder


def folder_message(folder: Folder) -> folder_pb2.Folder:
    """A folder on the wire."""
    return folder_pb2.Folder(
        id=to_public("source", folder.id),
        name=folder.name,
        description=folder.description,
        instructions=folder.instructions,
        metadata_json=wire.json_text(folder.metadata),
        embedding=folder.embedding,
        file_count=folder.file_count,
        created_by_id=to_public("user", folder.created_by_id),
        last_updated_by_id=to_public("user", folder.last_updated_by_id),
        created_at=timestamp(folder.created_at),
        updated_at=timestamp(folder.updated_at),
    )
