"""The table of tools for SQLAlchemy: lists are written with it, and a test holds it to the migrations."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
    DateTime,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR

metadata = MetaData(schema="tool_runner")

_WORDS = r"""
setweight(to_tsvector('english'::regconfig, translate(name, '_-', '  ') || ' '
    || regexp_replace(translate(name, '_-', '  '), '([a-z0-9])([A-Z])', '\1 \2', 'g')), 'A')
|| setweight(to_tsvector('english'::regconfig, description), 'B')
"""

tools = Table(
    "tools",
    metadata,
    Column("organization_id", Uuid, nullable=False),
    Column("id", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("tool_type", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("source_code", Text, nullable=False),
    Column("json_schema", Text, nullable=False),
    Column("args_json_schema", Text, nullable=False, server_default=text("''")),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("return_char_limit", Integer, nullable=False),
    Column("default_requires_approval", Boolean, nullable=False, server_default=text("false")),
    Column("enable_parallel_execution", Boolean, nullable=False, server_default=text("false")),
    Column("idempotent", Boolean, nullable=False, server_default=text("false")),
    Column("metadata", Text, nullable=False, server_default=text("'{}'")),
    Column("pip_requirements", Text, nullable=False, server_default=text("''")),
    Column("npm_requirements", Text, nullable=False, server_default=text("''")),
    Column("project_id", Text),
    Column("network", Text, nullable=False, server_default=text("''")),
    Column("takes_agent_state", Boolean, nullable=False, server_default=text("false")),
    Column("mcp_server_id", Uuid),
    Column("mcp_tool_name", Text, nullable=False, server_default=text("''")),
    Column("words", TSVECTOR, Computed(_WORDS, persisted=True)),
    Column("created_by_id", Uuid, nullable=False),
    Column("last_updated_by_id", Uuid, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint("organization_id", "name", name="tools_name_key"),
    Index("tools_by_creation", "organization_id", "created_at", "id"),
    Index("tools_by_words", "words", postgresql_using="gin"),
    Index(
        "tools_by_mcp_server",
        "organization_id",
        "mcp_server_id",
        postgresql_where=text("mcp_server_id IS NOT NULL"),
    ),
)
