"""Folders and files."""

from gateway.openapi.schemas import ANY, FLAG, MOMENT, OBJECT, TEXT, WHOLE, array, choice, maybe, names_of, of, record
from gateway.resources.archives.schemas import EMBEDDING_CONFIG
from loci.memory.v1 import folder_pb2

FOLDER = of(
    "Folder",
    folder_pb2.Folder.DESCRIPTOR,
    leave=("embedding", "file_count"),
    vector_db_provider=choice("native"),
    embedding_config=EMBEDDING_CONFIG,
    organization_id=TEXT,
)
_FILE_STATES = names_of(folder_pb2.FileStatus.DESCRIPTOR)
FILE = of(
    "FileMetadata",
    folder_pb2.File.DESCRIPTOR,
    leave=("name", "original_name", "media_type", "size", "status", "error"),
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
    is_deleted=FLAG,
)
FOLDERS_DESCRIBED = record(
    "OrganizationSourcesStats",
    {"sources": array(ANY), "total_sources": WHOLE, "total_files": WHOLE, "total_size": WHOLE},
)
AGENT_FILES = record("PaginatedAgentFiles", {"files": array(OBJECT), "next_cursor": maybe(TEXT), "has_more": FLAG})
