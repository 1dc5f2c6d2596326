"""Rows of the database as the values of `model.py`, and the columns that they need."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from services.common.errors import ResourceExhausted
from services.memory.model import Archive, Block, CallRecord, EmbeddingModel, FilePiece, Passage

BLOCK_COLUMNS = ", ".join(
    f"b.{name}"
    for name in (
        "id",
        "label",
        "value",
        "char_limit",
        "description",
        "read_only",
        "hidden",
        "metadata",
        "tags",
        "project_id",
        "template_name",
        "is_template",
        "created_by_id",
        "last_updated_by_id",
        "created_at",
        "updated_at",
        "version",
        "template_id",
        "base_template_id",
        "deployment_id",
        "entity_id",
        "preserve_on_migration",
    )
)
ARCHIVE_COLUMNS = (
    "a.id, a.name, a.description, a.embedding, a.model_id, e.handle, e.dimensions, a.metadata, a.passage_count, "
    "a.word_count, a.created_by_id, a.last_updated_by_id, a.created_at, a.updated_at"
)
# Of passages `p`, and of what PASSAGE_JOINS adds.
PASSAGE_COLUMNS = (
    "p.id, p.archive_id, p.text, p.tags, p.metadata, p.created_by_id, p.last_updated_by_id, p.created_at, "
    "p.updated_at, p.file_id, p.place, p.first_line, p.last_line, e.handle, f.name AS file, d.name AS folder"
)
# What one answer may have of texts: more does not pass through gRPC, and thousands of long ones fill the memory of the
# service. Where a page has more, its texts stay in the database. Their sizes are known without reading them.
MOST_BYTES = 32 * 1024 * 1024
PASSAGE_TEXT = f"CASE WHEN sum(octet_length(p.text)) OVER () <= {MOST_BYTES} THEN p.text END"
PASSAGE_JOINS = """
JOIN memory.archives a ON a.organization_id = p.organization_id AND a.id = p.archive_id
LEFT JOIN memory.passage_vectors v ON v.organization_id = p.organization_id AND v.archive_id = p.archive_id
    AND v.passage_id = p.id AND v.model_id = a.model_id
LEFT JOIN memory.embedding_models e ON e.id = v.model_id
LEFT JOIN memory.files f ON f.organization_id = p.organization_id AND f.id = p.file_id
LEFT JOIN memory.folders d ON d.organization_id = p.organization_id AND d.id = f.folder_id
"""
RECORD_COLUMNS = (
    "c.call_key, c.agent_id AS call_agent_id, c.tool_name, c.arguments_hash, c.tool_return, c.is_error, "
    "c.changed_block_ids"
)

Row = Mapping[str, Any]


def whole(text: str | None) -> str:
    """The text. Raises ResourceExhausted where it was left in the database."""
    if text is None:
        raise ResourceExhausted(f"the texts have more than {MOST_BYTES} bytes together; ask for fewer at a time")
    return text


def block(row: Row) -> Block:
    """A row with BLOCK_COLUMNS."""
    return Block(
        id=row["id"],
        label=row["label"],
        value=whole(row["value"]),
        limit=row["char_limit"],
        description=row["description"],
        read_only=row["read_only"],
        hidden=row["hidden"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
        project_id=row["project_id"],
        template_name=row["template_name"],
        is_template=row["is_template"],
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        version=row["version"],
        template_id=row["template_id"],
        base_template_id=row["base_template_id"],
        deployment_id=row["deployment_id"],
        entity_id=row["entity_id"],
        preserve_on_migration=row["preserve_on_migration"],
    )


def archive(row: Row) -> Archive:
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


def passage(row: Row) -> Passage:
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


def record(row: Row) -> CallRecord | None:
    """A row with RECORD_COLUMNS; None where an outer join found no call."""
    if row["call_key"] is None:
        return None
    return CallRecord(
        call_key=row["call_key"],
        agent_id=row["call_agent_id"],
        tool_name=row["tool_name"],
        arguments_hash=row["arguments_hash"],
        tool_return=row["tool_return"],
        is_error=row["is_error"],
        changed_block_ids=tuple(row["changed_block_ids"]),
    )


def from_json(value: Row, *, ids: Sequence[str], times: Sequence[str]) -> Row:
    """A row that came as JSON, where ids and times are texts."""
    changed = {name: UUID(value[name]) for name in ids} | {name: datetime.fromisoformat(value[name]) for name in times}
    return {**value, **changed}
