"""The tables of folders and the agents they are attached to."""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from services.memory.sql.columns import id_column, json, metadata, time


def _folder_key(name: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["organization_id", "folder_id"],
        ["memory.folders.organization_id", "memory.folders.id"],
        name=name,
        ondelete="CASCADE",
    )


folders = Table(
    "folders",
    metadata,
    id_column("organization_id"),
    id_column("id"),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("instructions", Text),
    json(),
    id_column("created_by_id"),
    id_column("last_updated_by_id"),
    time("created_at"),
    time("updated_at"),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint("organization_id", "name", name="folders_name_key"),
    ForeignKeyConstraint(
        ["organization_id", "id"],
        ["memory.archives.organization_id", "memory.archives.id"],
        name="folders_archive_fkey",
        ondelete="CASCADE",
    ),
    Index("folders_by_creation", "organization_id", "created_at", "id"),
)
agent_folders = Table(
    "agent_folders",
    metadata,
    id_column("organization_id"),
    id_column("agent_id"),
    id_column("folder_id"),
    time("attached_at"),
    PrimaryKeyConstraint("organization_id", "agent_id", "folder_id"),
    Column("most_open", Integer, nullable=False, server_default=text("5")),
    Column("view_chars", Integer, nullable=False, server_default=text("50000")),
    _folder_key("agent_folders_folder_fkey"),
    Index("agent_folders_by_folder", "organization_id", "folder_id", "attached_at"),
)
