"""Blocks, archives, passages, folders and files."""

from gateway.openapi.schemas import (
    ANY,
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    array,
    choice,
    maybe,
    names_of,
    of,
    record,
)
from loci.memory.v1 import archive_service_pb2, block_pb2, block_service_pb2, folder_pb2, passage_pb2

EMBEDDING_CONFIG = record(
    "EmbeddingConfig",
    {
        "handle": maybe(TEXT),
        "embedding_model": TEXT,
        "embedding_endpoint_type": TEXT,
        "embedding_endpoint": maybe(TEXT),
        "embedding_dim": WHOLE,
        "embedding_chunk_size": maybe(WHOLE),
        "batch_size": WHOLE,
        **dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment"), maybe(TEXT)),
    },
    optional=("azure_endpoint", "azure_version", "azure_deployment"),
)
_BLOCK_LEFT = ("created_at", "updated_at", "version")
BLOCK = of("Block", block_pb2.Block.DESCRIPTOR, leave=_BLOCK_LEFT, metadata=OBJECT)
BLOCK_NOW = of("BlockNow", block_pb2.Block.DESCRIPTOR, leave=_BLOCK_LEFT, metadata=OBJECT, version=WHOLE)
BLOCK_VERSION = of(
    "BlockVersion",
    block_pb2.BlockVersion.DESCRIPTOR,
    metadata=OBJECT,
    call_key=maybe(TEXT),
    restored_version=maybe(WHOLE),
)
BLOCK_DIFF = of("BlockDiff", block_service_pb2.DiffBlockVersionsResponse.DESCRIPTOR)
_TENANT: dict[str, Schema] = {"embedding_config": maybe(EMBEDDING_CONFIG), "organization_id": TEXT}
PASSAGE = of(
    "Passage",
    passage_pb2.Passage.DESCRIPTOR,
    leave=("file",),
    metadata=OBJECT,
    source_id=maybe(TEXT),
    file_id=maybe(TEXT),
    file_name=maybe(TEXT),
    embedding=maybe(array(NUMBER)),
    is_deleted=FLAG,
    **_TENANT,
)
_SCORES = record(
    "PassageScores",
    {"vector_score": maybe(NUMBER), "text_score": maybe(NUMBER)},
    optional=("vector_score", "text_score"),
)
PASSAGE_HIT = record("PassageSearchResult", {"passage": PASSAGE, "score": NUMBER, "metadata": _SCORES})
FOUND_PASSAGES = record(
    "ArchivalMemorySearchResponse",
    {
        "results": array(
            record(
                "ArchivalMemorySearchResult",
                {"id": TEXT, "timestamp": MOMENT, "content": TEXT, "tags": array(TEXT)},
            )
        ),
        "count": WHOLE,
    },
)
ARCHIVE = of(
    "Archive",
    passage_pb2.Archive.DESCRIPTOR,
    leave=("embedding", "dimensions", "passage_count"),
    metadata=OBJECT,
    vector_db_provider=choice("native"),
    **_TENANT,
)
FOLDER = of(
    "Folder",
    folder_pb2.Folder.DESCRIPTOR,
    leave=("embedding", "file_count"),
    metadata=OBJECT,
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
EMBEDDING_CHANGE = of(
    "EmbeddingChange",
    archive_service_pb2.EmbeddingChange.DESCRIPTOR,
    **dict.fromkeys(("from_embedding", "to_embedding", "last_error"), maybe(TEXT)),
)
