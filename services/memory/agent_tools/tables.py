"""The tables of the results of tool calls, and of owners of runs that may make none."""

from sqlalchemy import BigInteger, Boolean, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY

from services.memory.sql.columns import id_column, metadata, time

applied_calls = Table(
    "applied_calls",
    metadata,
    id_column("organization_id"),
    Column("call_key", Text, nullable=False),
    id_column("agent_id"),
    Column("tool_name", Text, nullable=False),
    Column("arguments_hash", LargeBinary, nullable=False),
    Column("tool_return", Text, nullable=False),
    Column("is_error", Boolean, nullable=False),
    Column("changed_block_ids", ARRAY(Uuid), nullable=False, server_default=text("'{}'")),
    time("created_at"),
    PrimaryKeyConstraint("organization_id", "call_key"),
    Index("applied_calls_by_agent", "organization_id", "agent_id"),
    Index("applied_calls_by_time", "created_at"),
)
run_fences = Table(
    "run_fences",
    metadata,
    id_column("organization_id"),
    id_column("run_id"),
    Column("fence", BigInteger, nullable=False),
    time("created_at"),
    PrimaryKeyConstraint("organization_id", "run_id"),
    Index("run_fences_by_time", "created_at"),
)
