"""The tables of archives and embedding models."""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from services.memory.sql.columns import count, flag, id_column, json, metadata, time

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("handle", Text, nullable=False),
    Column("dimensions", Integer, nullable=False),
    time("created_at"),
    UniqueConstraint("handle", "dimensions", name="embedding_models_handle_key"),
    comment="reference: one vector index per model serves all tenants, its id is a literal in their SQL",
)
archives = Table(
    "archives",
    metadata,
    id_column("organization_id"),
    id_column("id"),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("model_id", Integer),
    json(),
    count("passage_count"),
    count("word_count"),
    id_column("created_by_id"),
    id_column("last_updated_by_id"),
    time("created_at"),
    time("updated_at"),
    Column("embedding", Text),
    Column("kind", SmallInteger, nullable=False, server_default=text("1")),
    PrimaryKeyConstraint("organization_id", "id"),
    Index("archives_by_creation", "organization_id", "created_at", "id"),
    Index("archives_by_name", "organization_id", "name"),
)
agent_archives = Table(
    "agent_archives",
    metadata,
    id_column("organization_id"),
    id_column("agent_id"),
    id_column("archive_id"),
    flag("is_default"),
    time("attached_at"),
    flag("created_with_agent"),
    PrimaryKeyConstraint("organization_id", "agent_id", "archive_id"),
    ForeignKeyConstraint(
        ["organization_id", "archive_id"],
        ["memory.archives.organization_id", "memory.archives.id"],
        name="agent_archives_archive_fkey",
        ondelete="CASCADE",
    ),
    Index(
        "agent_archives_one_default",
        "organization_id",
        "agent_id",
        unique=True,
        postgresql_where=text("is_default"),
    ),
    Index("agent_archives_by_archive", "organization_id", "archive_id"),
)
