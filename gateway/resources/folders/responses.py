"""Folders and files as REST."""

from gateway.rest.convert import Rest, to_rest
from loci.memory.v1 import folder_pb2
from services.common.fields import enum_names

# Of a folder that is searched by words alone.
_NO_EMBEDDING: Rest = {
    "handle": None,
    "embedding_model": "none",
    "embedding_endpoint_type": "none",
    "embedding_endpoint": None,
    "embedding_dim": 0,
    "embedding_chunk_size": 300,
    "batch_size": 32,
}


def folder_to_rest(message: folder_pb2.Folder, embedding_config: Rest | None, organization_id: str) -> Rest:
    """Returns the reference's Folder: 12 fields. `embedding_config` is there without a model, too: clients rely on
    that.
    """
    rest = to_rest(message, leave=frozenset({"embedding", "file_count"}))
    return rest | {
        "embedding_config": embedding_config or _NO_EMBEDDING,
        "vector_db_provider": "native",
        "organization_id": organization_id,
    }


def file_to_rest(message: folder_pb2.File, organization_id: str) -> Rest:
    """Returns the reference's FileMetadata: 19 fields, with `folder_id`, `line_count` and `char_count` besides."""
    rest = to_rest(message, leave=frozenset({"name", "original_name", "media_type", "size", "status", "error"}))
    return rest | {
        "source_id": message.folder_id,
        "organization_id": organization_id,
        "file_name": message.name,
        "original_file_name": message.original_name,
        "file_path": None,
        "file_type": message.media_type,
        "file_size": message.size,
        "file_creation_date": None,
        "file_last_modified_date": None,
        "processing_status": enum_names(folder_pb2.FileStatus.DESCRIPTOR).get(message.status),
        "error_message": message.error or None,
        "is_deleted": False,
    }
