"""Rows of folders as values, and the columns that they need."""

from uuid import UUID

from services.common.errors import NotFound
from services.memory.folders.model import Folder
from services.memory.sql.rows import Row

FOLDER_COLUMNS = """d.id, d.name, d.description, d.instructions, d.metadata, a.embedding, d.created_by_id,
    d.last_updated_by_id, d.created_at, d.updated_at,
    (SELECT count(*) FROM memory.files n WHERE n.organization_id = d.organization_id AND n.folder_id = d.id)
        AS file_count"""
# Of a folder `d`, the archive that holds its passages.
FOLDER_JOIN = "JOIN memory.archives a ON a.organization_id = d.organization_id AND a.id = d.id"


def folder_of_row(row: Row) -> Folder:
    """A row with FOLDER_COLUMNS."""
    return Folder(
        id=row["id"],
        name=row["name"],
        description=row["description"],
        instructions=row["instructions"],
        metadata=row["metadata"],
        embedding=row["embedding"] or "",
        file_count=row["file_count"],
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def no_such_folder(folder_id: UUID) -> NotFound:
    """For an id that names no folder of the tenant."""
    return NotFound(f"Folder source-{folder_id} not found", reason="FOLDER_NOT_FOUND")
