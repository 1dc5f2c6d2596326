"""Folders and files as REST."""

from gateway.resources.blocks.responses import block_to_rest
from gateway.rest.convert import Rest, moment, to_rest
from loci.memory.v1 import block_pb2, folder_pb2
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
    """Returns the reference's Folder: 11 fields. `embedding_config` is there without a model, too: clients rely on
    that.
    """
    rest = to_rest(message, leave=frozenset({"embedding", "file_count"}))
    return rest | {
        "embedding_config": embedding_config or _NO_EMBEDDING,
        "organization_id": organization_id,
    }


def file_to_rest(message: folder_pb2.File, organization_id: str) -> Rest:
    """Returns the reference's FileMetadata: 17 fields. A file that waits is one that is being parsed."""
    waits = message.status in (folder_pb2.FILE_STATUS_PENDING, folder_pb2.FILE_STATUS_PARSING)
    status = folder_pb2.FILE_STATUS_PARSING if waits else message.status
    return {
        "id": message.id,
        "content": message.content if message.HasField("content") else None,
        "total_chunks": None if waits else message.total_chunks,
        "chunks_embedded": None if waits else message.chunks_embedded,
        "created_at": moment(message.created_at),
        "updated_at": moment(message.updated_at),
        "source_id": message.folder_id,
        "organization_id": organization_id,
        "file_name": message.name,
        "original_file_name": message.original_name,
        "file_path": None,
        "file_type": message.media_type,
        "file_size": message.size,
        "file_creation_date": None,
        "file_last_modified_date": None,
        "processing_status": enum_names(folder_pb2.FileStatus.DESCRIPTOR).get(status),
        "error_message": message.error or None,
    }


def file_block(file: folder_pb2.AgentFile, limit: int) -> Rest:
    """Returns the reference's FileBlock: a file of an agent's folders in the shape of a block. `limit`: of its view."""
    block = block_pb2.Block(
        id=file.id.replace("file_agent-", "block-"),
        label=file.file_name,
        value=file.visible_content,
        limit=limit,
        read_only=True,
    )
    return block_to_rest(block) | {
        "file_id": file.file_id,
        "source_id": file.folder_id,
        "is_open": file.is_open,
        "last_accessed_at": moment(file.last_accessed_at) if file.HasField("last_accessed_at") else None,
    }
