"""Archives, passages and changes of their embedding models."""

from gateway.openapi.schemas import (
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    array,
    choice,
    context_of,
    maybe,
    of,
    record,
)
from loci.memory.v1 import archive_service_pb2, passage_pb2

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
# Loci's own, there where they are set.
FACT_FIELDS = ("key", "valid_from", "valid_to", "superseded_by_id")
_TENANT: dict[str, Schema] = {"embedding_config": maybe(EMBEDDING_CONFIG), "organization_id": TEXT}
PASSAGE = of(
    "Passage",
    passage_pb2.Passage.DESCRIPTOR,
    leave=("file",),
    optional=FACT_FIELDS,
    tags=maybe(array(TEXT)),
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
PASSAGE_HIT = record(
    "PassageSearchResult",
    {
        "passage": PASSAGE,
        "score": NUMBER,
        "metadata": _SCORES,
        "context": context_of("PassageContext", PASSAGE),
    },
    optional=("context",),
)
_FOUND: dict[str, Schema] = {"id": TEXT, "timestamp": MOMENT, "content": TEXT, "tags": array(TEXT)}
_NEIGHBOUR = record("ArchivalMemoryNeighbour", _FOUND)
FOUND_PASSAGES = record(
    "ArchivalMemorySearchResponse",
    {
        "results": array(
            record(
                "ArchivalMemorySearchResult",
                _FOUND | {"context": context_of("ArchivalMemoryContext", _NEIGHBOUR)},
                optional=("context",),
            )
        ),
        "count": WHOLE,
    },
)
ARCHIVE = of(
    "Archive",
    passage_pb2.Archive.DESCRIPTOR,
    leave=("embedding", "dimensions", "passage_count"),
    metadata=maybe(OBJECT),
    vector_db_provider=choice("native"),
    **_TENANT,
)
EMBEDDING_CHANGE = of(
    "EmbeddingChange",
    archive_service_pb2.EmbeddingChange.DESCRIPTOR,
    **dict.fromkeys(("from_embedding", "to_embedding", "last_error"), maybe(TEXT)),
)
