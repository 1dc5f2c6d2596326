"""The tables of passages, their tags and vectors."""

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from services.memory.sql.columns import id_column, json, metadata, texts, time

passages = Table(
    "passages",
    metadata,
    id_column("organization_id"),
    id_column("archive_id"),
    id_column("id"),
    Column("text", Text, nullable=False),
    texts("tags"),
    json(),
    Column("words", TSVECTOR, nullable=False),
    Column("word_count", Integer, nullable=False),
    id_column("created_by_id"),
    id_column("last_updated_by_id"),
    time("created_at"),
    time("updated_at"),
    id_column("file_id", nullable=True),
    Column("place", Integer),
    Column("first_line", Integer),
    Column("last_line", Integer),
    Column("key", Text),
    Column("valid_from", DateTime(timezone=True)),
    Column("valid_to", DateTime(timezone=True)),
    id_column("superseded_by_id", nullable=True),
    PrimaryKeyConstraint("organization_id", "archive_id", "id"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id"],
        ["memory.archives.organization_id", "memory.archives.id"],
        name="passages_archive_fkey",
        ondelete="CASCADE",
    ),
    Index("passages_by_creation", "organization_id", "archive_id", "created_at", "id"),
    Index("passages_by_id", "organization_id", "id"),
    Index(
        "passages_by_words",
        "words",
        postgresql_using="gin",
        postgresql_with={"fastupdate": "on", "gin_pending_list_limit": "512"},
    ),
    Index(
        "passages_by_file",
        "organization_id",
        "archive_id",
        "file_id",
        "place",
        postgresql_where=text("file_id IS NOT NULL"),
    ),
    Index("passages_by_key", "organization_id", "archive_id", "key", postgresql_where=text("key IS NOT NULL")),
    Index("passages_ended", "organization_id", "archive_id", "id", postgresql_where=text("valid_to IS NOT NULL")),
)
PASSAGE_KEY = ["memory.passages.organization_id", "memory.passages.archive_id", "memory.passages.id"]
passage_tags = Table(
    "passage_tags",
    metadata,
    id_column("organization_id"),
    id_column("archive_id"),
    id_column("passage_id"),
    Column("tag", Text(collation="C"), nullable=False),
    PrimaryKeyConstraint("organization_id", "archive_id", "passage_id", "tag"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id", "passage_id"],
        PASSAGE_KEY,
        name="passage_tags_passage_fkey",
        ondelete="CASCADE",
    ),
    Index("passage_tags_by_tag", "organization_id", "archive_id", "tag", "passage_id"),
)
passage_vectors = Table(
    "passage_vectors",
    metadata,
    id_column("organization_id"),
    id_column("archive_id"),
    id_column("passage_id"),
    Column("model_id", Integer, nullable=False),
    Column("embedding", HALFVEC, nullable=False),
    Column("waiting", Boolean, nullable=False, server_default=text("true")),
    PrimaryKeyConstraint("organization_id", "archive_id", "passage_id", "model_id"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id", "passage_id"],
        PASSAGE_KEY,
        name="passage_vectors_passage_fkey",
        ondelete="CASCADE",
    ),
    Index("passage_vectors_waiting", "model_id", "organization_id", "archive_id", postgresql_where=text("waiting")),
)
