"""The tables of the schema `memory` for SQLAlchemy: lists are written with them, and a test holds them to the
migrations."""

from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

metadata = MetaData(schema="memory")


def _id(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Uuid, nullable=nullable)


def _time(name: str) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def _flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _json(*, default: bool = True) -> Column[Any]:
    return Column("metadata", JSONB, nullable=False, server_default=text("'{}'") if default else None)


def _texts(name: str) -> Column[Any]:
    return Column(name, ARRAY(Text), nullable=False, server_default=text("'{}'"))


blocks = Table(
    "blocks",
    metadata,
    _id("organization_id"),
    _id("id"),
    Column("label", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("char_limit", BigInteger, nullable=False),
    Column("description", Text),
    _flag("read_only"),
    _flag("hidden"),
    _json(),
    _texts("tags"),
    Column("project_id", Text),
    Column("template_name", Text),
    _flag("is_template"),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("template_id", Text),
    Column("base_template_id", Text),
    Column("deployment_id", Text),
    Column("entity_id", Text),
    _flag("preserve_on_migration"),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint("organization_id", "id", "label", name="blocks_label_key"),
    CheckConstraint("char_length(value) <= char_limit", name="blocks_within_limit"),
    Index("blocks_by_creation", "organization_id", "created_at", "id"),
    Index("blocks_by_tag", "tags", postgresql_using="gin"),
)

block_history = Table(
    "block_history",
    metadata,
    _id("organization_id"),
    _id("block_id"),
    Column("version", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("char_limit", BigInteger, nullable=False),
    Column("description", Text),
    _json(default=False),
    Column("operation", SmallInteger, nullable=False),
    _id("actor_id"),
    _id("agent_id", nullable=True),
    _id("run_id", nullable=True),
    _id("step_id", nullable=True),
    Column("call_key", Text),
    _time("created_at"),
    Column("restored_version", BigInteger),
    Column("redo_version", BigInteger),
    PrimaryKeyConstraint("organization_id", "block_id", "version"),
    ForeignKeyConstraint(
        ["organization_id", "block_id"],
        ["memory.blocks.organization_id", "memory.blocks.id"],
        name="block_history_block_fkey",
        ondelete="CASCADE",
    ),
    Index("block_history_by_run", "organization_id", "run_id", postgresql_where=text("run_id IS NOT NULL")),
    Index("block_history_by_time", "organization_id", "block_id", "created_at", "version"),
)

agent_blocks = Table(
    "agent_blocks",
    metadata,
    _id("organization_id"),
    _id("agent_id"),
    _id("block_id"),
    Column("label", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    _flag("created_with_agent"),
    _time("attached_at"),
    PrimaryKeyConstraint("organization_id", "agent_id", "block_id"),
    UniqueConstraint("organization_id", "agent_id", "label", name="agent_blocks_label_key"),
    ForeignKeyConstraint(
        ["organization_id", "block_id", "label"],
        ["memory.blocks.organization_id", "memory.blocks.id", "memory.blocks.label"],
        name="agent_blocks_block_fkey",
        ondelete="CASCADE",
        onupdate="CASCADE",
    ),
    Index("agent_blocks_by_block", "organization_id", "block_id", "attached_at"),
)

conversation_blocks = Table(
    "conversation_blocks",
    metadata,
    _id("organization_id"),
    _id("conversation_id"),
    Column("label", Text, nullable=False),
    _id("block_id"),
    _id("agent_id"),
    PrimaryKeyConstraint("organization_id", "conversation_id", "label"),
    ForeignKeyConstraint(
        ["organization_id", "block_id", "label"],
        ["memory.blocks.organization_id", "memory.blocks.id", "memory.blocks.label"],
        name="conversation_blocks_block_fkey",
        ondelete="CASCADE",
        onupdate="CASCADE",
    ),
    Index("conversation_blocks_by_block", "organization_id", "block_id"),
    Index("conversation_blocks_by_agent", "organization_id", "agent_id", "conversation_id"),
)

embedding_models = Table(
    "embedding_models",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("handle", Text, nullable=False),
    Column("dimensions", Integer, nullable=False),
    _time("created_at"),
    UniqueConstraint("handle", "dimensions", name="embedding_models_handle_key"),
    comment="reference: one vector index per model serves all tenants, its id is a literal in their SQL",
)

archives = Table(
    "archives",
    metadata,
    _id("organization_id"),
    _id("id"),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("model_id", Integer),
    _json(),
    _count("passage_count"),
    _count("word_count"),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
    Column("embedding", Text),
    Column("kind", SmallInteger, nullable=False, server_default=text("1")),
    PrimaryKeyConstraint("organization_id", "id"),
    Index("archives_by_creation", "organization_id", "created_at", "id"),
    Index("archives_by_name", "organization_id", "name"),
)

agent_archives = Table(
    "agent_archives",
    metadata,
    _id("organization_id"),
    _id("agent_id"),
    _id("archive_id"),
    _flag("is_default"),
    _time("attached_at"),
    _flag("created_with_agent"),
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
    _id("organization_id"),
    _id("archive_id"),
    _id("id"),
    Column("text", Text, nullable=False),
    _texts("tags"),
    _json(),
    Column("words", TSVECTOR, nullable=False),
    Column("word_count", Integer, nullable=False),
    _id("created_by_id"),
    _id("last_updated_by_id"),
    _time("created_at"),
    _time("updated_at"),
    _id("file_id", nullable=True),
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
    _id("organization_id"),
    _id("archive_id"),
    _id("passage_id"),
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
    _id("organization_id"),
    _id("archive_id"),
    _id("passage_id"),
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
    _id("organization_id"),
    _id("archive_id"),
    _id("id"),
    Column("from_embedding", Text),
    Column("from_model_id", Integer),
    Column("to_embedding", Text),
    Column("to_model_id", Integer),
    Column("state", SmallInteger, nullable=False, server_default=text("1")),
    _flag("rolling_back"),
    Column("error", Text),
    Column("reached_at", DateTime(timezone=True)),
    _id("reached_id", nullable=True),
    _id("created_by_id"),
    _time("created_at"),
    _time("updated_at"),
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
    _id("organization_id"),
    _id("archive_id"),
    _id("passage_id"),
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
    _id("organization_id"),
    _id("scope_id"),
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
    _id("organization_id"),
    _id("scope_id"),
    Column("passages", BigInteger, nullable=False),
    Column("sampled", BigInteger, nullable=False),
    _time("taken_at"),
    PrimaryKeyConstraint("organization_id", "scope_id"),
)

jobs = Table(
    "jobs",
    metadata,
    _id("id"),
    _id("organization_id"),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    _time("not_before"),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    _id("worker_id", nullable=True),
    Column("leased_until", DateTime(timezone=True)),
    _flag("again"),
    _time("created_at"),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("organization_id", "kind", "subject", name="jobs_one_per_subject"),
    Index("jobs_by_time", "not_before"),
    comment="reference: work is claimed before its tenant is known; small, and empty when idle",
)

applied_calls = Table(
    "applied_calls",
    metadata,
    _id("organization_id"),
    Column("call_key", Text, nullable=False),
    _id("agent_id"),
    Column("tool_name", Text, nullable=False),
    Column("arguments_hash", LargeBinary, nullable=False),
    Column("tool_return", Text, nullable=False),
    Column("is_error", Boolean, nullable=False),
    Column("changed_block_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'")),
    _time("created_at"),
    PrimaryKeyConstraint("organization_id", "call_key"),
    Index("applied_calls_by_agent", "organization_id", "agent_id"),
    Index("applied_calls_by_time", "created_at"),
)
