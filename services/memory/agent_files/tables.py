"""The table of what agents have open."""

from sqlalchemy import Boolean, Column, Index, Integer, PrimaryKeyConstraint, Table

from services.memory.files.tables import _file_key
from services.memory.sql.columns import id_column, metadata, time

agent_files = Table(
    "agent_files",
    metadata,
    id_column("organization_id"),
    id_column("agent_id"),
    id_column("file_id"),
    Column("is_open", Boolean, nullable=False),
    Column("first_line", Integer, nullable=False),
    Column("last_line", Integer),
    Column("char_limit", Integer, nullable=False),
    time("accessed_at"),
    PrimaryKeyConstraint("organization_id", "agent_id", "file_id"),
    _file_key("agent_files_file_fkey"),
    Index("agent_files_by_file", "organization_id", "file_id"),
)
