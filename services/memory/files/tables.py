"""The tables of files, their uploads and their text."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from services.memory.sql.columns import id_column, metadata, time


def _number(name: str, default: int) -> Column[Any]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def _file_key(name: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["organization_id", "file_id"],
        ["memory.files.organization_id", "memory.files.id"],
        name=name,
        ondelete="CASCADE",
    )


files = Table(
    "files",
    metadata,
    id_column("organization_id"),
    id_column("id"),
    id_column("folder_id"),
    Column("name", Text, nullable=False),
    Column("original_name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("upload_id", Uuid),
    Column("tries", SmallInteger, nullable=False, server_default=text("0")),
    Column("status", SmallInteger, nullable=False, server_default=text("1")),
    Column("error", Text),
    _number("chunk_count", 0),
    _number("embedded_count", 0),
    _number("line_count", 0),
    Column("char_count", BigInteger, nullable=False, server_default=text("0")),
    Column("ending", Text, nullable=False, server_default=text("''")),
    id_column("created_by_id"),
    time("created_at"),
    time("updated_at"),
    PrimaryKeyConstraint("organization_id", "id"),
    UniqueConstraint("organization_id", "folder_id", "name", name="files_name_key"),
    Index("files_by_creation", "organization_id", "folder_id", "created_at", "id"),
)
file_uploads = Table(
    "file_uploads",
    metadata,
    id_column("organization_id"),
    id_column("upload_id"),
    Column("part", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("organization_id", "upload_id", "part"),
)
file_pages = Table(
    "file_pages",
    metadata,
    id_column("organization_id"),
    id_column("file_id"),
    Column("page", Integer, nullable=False),
    Column("first_line", Integer, nullable=False),
    Column("last_line", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("continued", Boolean, nullable=False, server_default=text("false")),
    _number("first_place", 0),
    Column("cuts", ARRAY(Integer), nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("organization_id", "file_id", "page"),
    _file_key("file_pages_file_fkey"),
)
