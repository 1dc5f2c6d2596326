"""Rows of archives as values, and the columns that they need."""

from services.memory.archives.model import Archive, EmbeddingModel
from services.memory.sql.rows import Row

ARCHIVE_COLUMNS = (
    "a.id, a.name, a.description, a.embedding, a.model_id, e.handle, e.dimensions, a.metadata, a.passage_count, "
    "a.word_count, a.created_by_id, a.last_updated_by_id, a.created_at, a.updated_at"
)


def archive_of_row(row: Row) -> Archive:
    """A row with ARCHIVE_COLUMNS."""
    model = None
    if row["model_id"] is not None:
        model = EmbeddingModel(id=row["model_id"], handle=row["handle"], dimensions=row["dimensions"])
    return Archive(
        id=row["id"],
        name=row["name"],
        description=row["description"],
        embedding=row["embedding"],
        model=model,
        metadata=row["metadata"],
        passage_count=row["passage_count"],
        word_count=row["word_count"],
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
