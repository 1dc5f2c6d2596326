"""Rows of the database as the values of `model.py`, and the columns that they need."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from services.memory.model import Archive, Block, CallRecord, EmbeddingModel, Passage

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
    "a.id, a.name, a.description, a.model_id, e.handle, e.dimensions, a.metadata, a.passage_count, "
    "a.word_count, a.created_by_id, a.created_at, a.updated_at"
)
RECORD_COLUMNS = (
    "c.call_key, c.agent_id AS call_agent_id, c.tool_name, c.arguments_hash, c.tool_return, c.is_error, "
    "c.changed_block_ids"
)

Row = Mapping[str, Any]


def block(row: Row) -> Block:
    """A row with BLOCK_COLUMNS."""
    return Block(
        id=row["id"],
        label=row["label"],
        value=row["value"],
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
        model=model,
        metadata=row["metadata"],
        passage_count=row["passage_count"],
        word_count=row["word_count"],
        created_by_id=row["created_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def passage(row: Row) -> Passage:
    """A row with the columns of passages, and `handle`: of the model whose vector it has."""
    return Passage(
        id=row["id"],
        archive_id=row["archive_id"],
        text=row["text"],
        tags=tuple(row["tags"]),
        metadata=row["metadata"],
        embedding=row["handle"],
        created_by_id=row["created_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
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
