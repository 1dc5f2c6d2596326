"""The tables of changes of embedding models."""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

from services.memory.passages.tables import PASSAGE_KEY
from services.memory.sql.columns import flag, id_column, metadata, time

embedding_changes = Table(
    "embedding_changes",
    metadata,
    id_column("organization_id"),
    id_column("archive_id"),
    id_column("id"),
    Column("from_embedding", Text),
    Column("from_model_id", Integer),
    Column("to_embedding", Text),
    Column("to_model_id", Integer),
    Column("state", SmallInteger, nullable=False, server_default=text("1")),
    flag("rolling_back"),
    Column("error", Text),
    Column("reached_at", DateTime(timezone=True)),
    id_column("reached_id", nullable=True),
    id_column("created_by_id"),
    time("created_at"),
    time("updated_at"),
    Column("completed_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("organization_id", "archive_id", "id"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id"],
        ["memory.archives.organization_id", "memory.archives.id"],
        name="embedding_changes_archive_fkey",
        ondelete="CASCADE",
    ),
    Index(
        "embedding_changes_one_runs",
        "organization_id",
        "archive_id",
        unique=True,
        postgresql_where=text("state = 1"),
    ),
)
embedding_blanks = Table(
    "embedding_blanks",
    metadata,
    id_column("organization_id"),
    id_column("archive_id"),
    id_column("passage_id"),
    Column("model_id", Integer, nullable=False),
    Column("text_hash", Text, nullable=False),
    PrimaryKeyConstraint("organization_id", "archive_id", "passage_id", "model_id"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id", "passage_id"],
        PASSAGE_KEY,
        name="embedding_blanks_passage_fkey",
        ondelete="CASCADE",
    ),
)
