"""Folders and files."""

from gateway.openapi.schemas import ANY, FLAG, MOMENT, OBJECT, TEXT, WHOLE, array, maybe, names_of, of, record
from gateway.resources.archives.schemas import EMBEDDING_CONFIG
from gateway.resources.blocks.schemas import BLOCK_LEFT
from loci.memory.v1 import block_pb2, folder_pb2

FOLDER = of(
    "Folder",
    folder_pb2.Folder.DESCRIPTOR,
    leave=("embedding", "file_count"),
    embedding_config=EMBEDDING_CONFIG,
    organization_id=TEXT,
)
_FILE_STATES = names_of(folder_pb2.FileStatus.DESCRIPTOR)
FILE = of(
    "FileMetadata",
    folder_pb2.File.DESCRIPTOR,
    leave=(
        "name",
        "path",
        "folder_id",
        "original_name",
        "media_type",
        "size",
        "status",
        "error",
        "line_count",
        "char_count",
        "created_by_id",
    ),
    total_chunks=maybe(WHOLE),
    chunks_embedded=maybe(WHOLE),
    source_id=TEXT,
    organization_id=TEXT,
    file_name=TEXT,
    original_file_name=TEXT,
    file_path=maybe(TEXT),
    file_type=TEXT,
    file_size=WHOLE,
    file_creation_date=maybe(MOMENT),
    file_last_modified_date=maybe(MOMENT),
    processing_status=_FILE_STATES,
    error_message=maybe(TEXT),
)
FOLDERS_DESCRIBED = record(
    "OrganizationSourcesStats",
    {"sources": array(ANY), "total_sources": WHOLE, "total_files": WHOLE, "total_size": WHOLE},
)
FILE_BLOCK = of(
    "FileBlock",
    block_pb2.Block.DESCRIPTOR,
    leave=BLOCK_LEFT,
    file_id=TEXT,
    source_id=TEXT,
    is_open=FLAG,
    last_accessed_at=maybe(MOMENT),
)
AGENT_FILES = record("PaginatedAgentFiles", {"files": array(OBJECT), "next_cursor": maybe(TEXT), "has_more": FLAG})
