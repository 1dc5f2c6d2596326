"""Rows of files and pages as values, and the columns that they need."""

from uuid import UUID

from services.common.errors import NotFound
from services.memory.files.model import File, FileStatus, TextPage
from services.memory.sql.rows import Row

FILE_COLUMNS = """f.id, f.folder_id, d.name AS folder_name, f.name, f.original_name, f.media_type, f.size, f.status,
    f.error, f.chunk_count, f.embedded_count, f.line_count, f.char_count, f.created_by_id, f.created_at, f.updated_at"""
# A file whose folder is gone is as good as gone.
FILE_JOIN = "JOIN memory.folders d ON d.organization_id = f.organization_id AND d.id = f.folder_id"
PAGE_COLUMNS = "p.page, p.first_line, p.last_line, p.text, p.continued, p.first_place, p.cuts"


def file_of_row(row: Row) -> File:
    """A row with FILE_COLUMNS."""
    return File(
        id=row["id"],
        folder_id=row["folder_id"],
        folder_name=row["folder_name"],
        name=row["name"],
        original_name=row["original_name"],
        media_type=row["media_type"],
        size=row["size"],
        status=FileStatus(row["status"]),
        error=row["error"],
        chunk_count=row["chunk_count"],
        embedded_count=row["embedded_count"],
        line_count=row["line_count"],
        char_count=row["char_count"],
        created_by_id=row["created_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def page_of_row(row: Row) -> TextPage:
    """A row with PAGE_COLUMNS."""
    return TextPage(
        page=row["page"],
        first_line=row["first_line"],
        last_line=row["last_line"],
        text=row["text"],
        continued=row["continued"],
        first_place=row["first_place"],
        cuts=tuple(zip(row["cuts"][::2], row["cuts"][1::2], strict=True)),
    )


def no_such_file(file_id: UUID) -> NotFound:
    """For an id that names no file where it was looked for."""
    return NotFound(f"File file-{file_id} not found", reason="FILE_NOT_FOUND")
