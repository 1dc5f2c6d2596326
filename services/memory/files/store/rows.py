"""Rows of files and pages as values, and the columns that they need."""

from uuid import UUID

from services.common.core.records import record
from services.common.errors import NotFound
from services.memory.files.model import File, FileStatus, TextPage
from services.memory.files.tables import file_pages, files
from services.memory.sql.columns import select_list
from services.memory.sql.rows import Row

FILE_COLUMNS = f"{select_list('f', File, files)}, d.name AS folder_name"
# A file whose folder is gone is as good as gone.
FILE_JOIN = "JOIN memory.folders d ON d.organization_id = f.organization_id AND d.id = f.folder_id"
PAGE_COLUMNS = select_list("p", TextPage, file_pages)


def file_of_row(row: Row) -> File:
    """Returns the file in a row with FILE_COLUMNS."""
    return record(File, {**row, "status": FileStatus(row["status"])})


def page_of_row(row: Row) -> TextPage:
    """Returns the page in a row with PAGE_COLUMNS."""
    ends = iter(row["cuts"])
    return record(TextPage, {**row, "cuts": zip(ends, ends, strict=True)})


def no_such_file(file_id: UUID) -> NotFound:
    """Returns the error for an id that names no file where it was looked for."""
    return NotFound(f"File file-{file_id} not found", reason="FILE_NOT_FOUND")
