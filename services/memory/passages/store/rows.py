"""Rows of passages as values, and the columns that they need."""

from services.common.core.records import record
from services.memory.passages.model import FilePiece, Passage
from services.memory.passages.tables import passages
from services.memory.sql.columns import select_list
from services.memory.sql.rows import MOST_BYTES, Row, whole

# Of passages `p`, and of what PASSAGE_JOINS adds.
PASSAGE_COLUMNS = (
    f"{select_list('p', Passage, passages)}, p.file_id, p.place, p.first_line, p.last_line, e.handle AS embedding, "
    "d.name || '/' || f.name AS file_name, f.folder_id"
)
PASSAGE_TEXT = f"CASE WHEN sum(octet_length(p.text)) OVER () <= {MOST_BYTES} THEN p.text END"
# Of several passages.
PASSAGES_COLUMNS = PASSAGE_COLUMNS.replace("p.text", PASSAGE_TEXT, 1)
PASSAGE_JOINS = """
JOIN memory.archives a ON a.organization_id = p.organization_id AND a.id = p.archive_id
LEFT JOIN memory.passage_vectors v ON v.organization_id = p.organization_id AND v.archive_id = p.archive_id
    AND v.passage_id = p.id AND v.model_id = a.model_id
LEFT JOIN memory.embedding_models e ON e.id = v.model_id
LEFT JOIN memory.files f ON f.organization_id = p.organization_id AND f.id = p.file_id
LEFT JOIN memory.folders d ON d.organization_id = p.organization_id AND d.id = f.folder_id
"""


def passage_of_row(row: Row) -> Passage:
    """Returns the passage in a row with PASSAGE_COLUMNS."""
    whole(row["text"])
    return record(Passage, {**row, "file": None if row["file_id"] is None else record(FilePiece, row)})
