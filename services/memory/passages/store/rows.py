"""Rows of passages as values, and the columns that they need."""

from services.memory.passages.model import FilePiece, Passage
from services.memory.sql.rows import MOST_BYTES, Row, whole

# Of passages `p`, and of what PASSAGE_JOINS adds.
PASSAGE_COLUMNS = (
    "p.id, p.archive_id, p.text, p.tags, p.metadata, p.created_by_id, p.last_updated_by_id, p.created_at, "
    "p.updated_at, p.file_id, p.place, p.first_line, p.last_line, e.handle, f.name AS file, d.name AS folder"
)
PASSAGE_TEXT = f"CASE WHEN sum(octet_length(p.text)) OVER () <= {MOST_BYTES} THEN p.text END"
PASSAGE_JOINS = """
JOIN memory.archives a ON a.organization_id = p.organization_id AND a.id = p.archive_id
LEFT JOIN memory.passage_vectors v ON v.organization_id = p.organization_id AND v.archive_id = p.archive_id
    AND v.passage_id = p.id AND v.model_id = a.model_id
LEFT JOIN memory.embedding_models e ON e.id = v.model_id
LEFT JOIN memory.files f ON f.organization_id = p.organization_id AND f.id = p.file_id
LEFT JOIN memory.folders d ON d.organization_id = p.organization_id AND d.id = f.folder_id
"""


def passage_of_row(row: Row) -> Passage:
    """A row with PASSAGE_COLUMNS."""
    return Passage(
        id=row["id"],
        archive_id=row["archive_id"],
        text=whole(row["text"]),
        tags=tuple(row["tags"]),
        metadata=row["metadata"],
        embedding=row["handle"],
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        file=None if row["file_id"] is None else _piece(row),
    )


def _piece(row: Row) -> FilePiece:
    return FilePiece(
        file_id=row["file_id"],
        file_name=f"{row['folder']}/{row['file']}",
        place=row["place"],
        first_line=row["first_line"],
        last_line=row["last_line"],
    )
