"""Rows of blocks as values, and the columns that they need."""

from services.memory.blocks.model import Block
from services.memory.sql.rows import Row, whole

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


def block_of_row(row: Row) -> Block:
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
