"""The tables of archives and passages, for SQLAlchemy."""

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    Column,
    DateTime,
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
from sqlalchemy.dialects.postgresql import TSVECTOR

from services.memory.adapters.columns import count, flag, id_column, json, metadata, texts, time

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
)

_PASSAGE = ["memory.passages.organization_id", "memory.passages.archive_id", "memory.passages.id"]

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
        _PASSAGE,
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
        _PASSAGE,
        name="passage_vectors_passage_fkey",
        ondelete="CASCADE",
    ),
    Index("passage_vectors_waiting", "model_id", "organization_id", "archive_id", postgresql_where=text("waiting")),
)

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
        _PASSAGE,
        name="embedding_blanks_passage_fkey",
        ondelete="CASCADE",
    ),
)

word_counts = Table(
    "word_counts",
    metadata,
    id_column("organization_id"),
    id_column("scope_id"),
    Column("lexeme", Text(collation="C"), nullable=False),
    Column("share", REAL, nullable=False),
    PrimaryKeyConstraint("organization_id", "scope_id", "lexeme"),
    ForeignKeyConstraint(
        ["organization_id", "scope_id"],
        ["memory.word_samples.organization_id", "memory.word_samples.scope_id"],
        name="word_counts_sample_fkey",
        ondelete="CASCADE",
    ),
)

word_samples = Table(
    "word_samples",
    metadata,
    id_column("organization_id"),
    id_column("scope_id"),
    Column("passages", BigInteger, nullable=False),
    Column("sampled", BigInteger, nullable=False),
    time("taken_at"),
    PrimaryKeyConstraint("organization_id", "scope_id"),
)
