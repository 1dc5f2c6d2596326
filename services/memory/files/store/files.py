"""`FileStore` on Postgres."""

from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.core.paging import Page, PageOf
from services.common.keyset import Keyset
from services.memory.core.file_text.pages import join_pages
from services.memory.files.model import FILE_JOB, File, FileStatus, subject_of
from services.memory.files.store.rows import (
    FILE_COLUMNS,
    FILE_JOIN,
    PAGE_COLUMNS,
    file_of_row,
    no_such_file,
    page_of_row,
)
from services.memory.files.tables import files
from services.memory.folders.store import no_such_folder
from services.memory.folders.tables import folders
from services.memory.jobs.store import add_job

_UNFINISHED = [status.value for status in (FileStatus.PENDING, FileStatus.PARSING, FileStatus.EMBEDDING)]
# Whoever deletes removes the passages himself; this is for those that he did not come to.
_AFTER_SECONDS = 30.0

_GET = f"""
SELECT {FILE_COLUMNS} FROM memory.files f {FILE_JOIN}
WHERE f.organization_id = $1 AND f.id = $2 AND ($3::uuid IS NULL OR f.folder_id = $3)
"""
_FIND = f"""
SELECT d.id AS of_folder, {FILE_COLUMNS}
FROM memory.folders d
LEFT JOIN memory.files f ON f.organization_id = d.organization_id AND f.folder_id = d.id AND f.name = $3
WHERE d.organization_id = $1 AND d.id = $2
"""
_PAGES = (
    f"SELECT {PAGE_COLUMNS} FROM memory.file_pages p WHERE p.organization_id = $1 AND p.file_id = $2 ORDER BY p.page"
)
_SIZE = """
SELECT f.ending, (
    SELECT coalesce(sum(octet_length(p.text)), 0) FROM memory.file_pages p
    WHERE p.organization_id = $1 AND p.file_id = $2) AS bytes
FROM memory.files f WHERE f.organization_id = $1 AND f.id = $2
"""
_DELETE = """
WITH gone AS (
    DELETE FROM memory.files f WHERE f.organization_id = $1 AND f.folder_id = $2 AND f.id = $3
    RETURNING f.upload_id
), bytes AS (
    DELETE FROM memory.file_uploads u USING gone WHERE u.organization_id = $1 AND u.upload_id = gone.upload_id
)
SELECT true FROM gone
"""
# What was parsed is not parsed again.
_RETRY = """
UPDATE memory.files
SET status = CASE WHEN upload_id IS NULL THEN 3 ELSE 1 END, error = NULL, tries = 0, updated_at = now()
WHERE organization_id = $1 AND folder_id = $2 AND id = $3 AND status = 5 RETURNING id
"""

_KEYSET = Keyset(files, "file")


class PostgresFiles:
    """`FileStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._engine = engine

    async def get(self, organization_id: UUID, file_id: UUID, folder_id: UUID | None = None) -> File:
        row = await self._pool.fetchrow(_GET, organization_id, file_id, folder_id)
        if row is None:
            raise no_such_file(file_id)
        return file_of_row(row)

    async def find(self, organization_id: UUID, folder_id: UUID, name: str) -> File | None:
        row = await self._pool.fetchrow(_FIND, organization_id, folder_id, name)
        if row is None:
            raise no_such_folder(folder_id)
        return None if row["id"] is None else file_of_row(row)

    async def list(
        self, organization_id: UUID, folder_id: UUID, page: Page, *, unfinished: bool = False
    ) -> PageOf[File]:
        of_folder = (files.c.organization_id == organization_id, files.c.folder_id == folder_id)
        named = select(folders.c.name).where(folders.c.organization_id == organization_id, folders.c.id == folder_id)
        async with self._engine.connect() as connection:
            folder_name = await connection.scalar(named)
            if folder_name is None:
                raise no_such_folder(folder_id)
            within = await _KEYSET.bounds(connection, page, organization_id, *of_folder)
            query = select(*files.c).where(*of_folder, *within)
            if unfinished:
                query = query.where(files.c.status.in_(_UNFINISHED))
            result = _KEYSET.cut((await connection.execute(_KEYSET.order_by_scan(query, page))).all(), page)
        items = tuple(file_of_row({**row._asdict(), "folder_name": folder_name}) for row in result.items)
        return PageOf(items, result.next_token)

    async def content(self, organization_id: UUID, file_id: UUID, most_bytes: int) -> str | None:
        size = await self._pool.fetchrow(_SIZE, organization_id, file_id)
        if size is None or size["bytes"] > most_bytes:
            return None
        pages = [page_of_row(row) for row in await self._pool.fetch(_PAGES, organization_id, file_id)]
        return join_pages(pages) + str(size["ending"])

    async def delete(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await delete_file(connection, organization_id, folder_id, file_id, after=_AFTER_SECONDS):
                raise no_such_file(file_id)

    async def retry(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> File:
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(_RETRY, organization_id, folder_id, file_id) is not None:
                await add_job(connection, organization_id, FILE_JOB, subject_of(folder_id, file_id))
        return await self.get(organization_id, file_id, folder_id)


async def delete_file(
    connection: Any, organization_id: UUID, folder_id: UUID, file_id: UUID, *, after: float = 0.0
) -> bool:
    """Removes a file with its text and bytes; its passages go by its job, `after` so many seconds. In a transaction.

    False where there is none.
    """
    if not await connection.fetchval(_DELETE, organization_id, folder_id, file_id):
        return False
    await add_job(connection, organization_id, FILE_JOB, subject_of(folder_id, file_id), seconds=after)
    return True
