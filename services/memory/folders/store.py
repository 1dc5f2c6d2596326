"""Folders on Postgres."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.core.paging import Page, PageOf
from services.common.core.records import record
from services.common.errors import AlreadyExists, NotFound
from services.common.keyset import Keyset
from services.memory.archives.store import erase_archive
from services.memory.archives.tables import archives
from services.memory.files.model import FOLDER_JOB
from services.memory.files.tables import files
from services.memory.folders.model import Folder, FolderDraft
from services.memory.folders.tables import folders
from services.memory.jobs.store import add_job
from services.memory.sql.columns import select_list
from services.memory.sql.rows import Row
from services.memory.sql.statements import Values

FOLDER_COLUMNS = f"""{select_list("d", Folder, folders)}, coalesce(a.embedding, '') AS embedding,
    (SELECT count(*) FROM memory.files n WHERE n.organization_id = d.organization_id AND n.folder_id = d.id)
        AS file_count"""
# Of a folder `d`, the archive that holds its passages.
FOLDER_JOIN = "JOIN memory.archives a ON a.organization_id = d.organization_id AND a.id = d.id"


# Files that are removed in one statement, with their texts.
_PORTION = 20

_GET = f"SELECT {FOLDER_COLUMNS} FROM memory.folders d {FOLDER_JOIN} WHERE d.organization_id = $1 AND d.id = $2"
_NEW_ARCHIVE = """
INSERT INTO memory.archives (organization_id, id, name, embedding, kind, created_by_id, last_updated_by_id)
VALUES ($1, $2, $3, $4, 2, $5, $5) ON CONFLICT DO NOTHING RETURNING id
"""
_NEW_FOLDER = """
INSERT INTO memory.folders (
    organization_id, id, name, description, instructions, metadata, created_by_id, last_updated_by_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
"""
_UPDATE = """
UPDATE memory.folders SET {changes}last_updated_by_id = $3, updated_at = now()
WHERE organization_id = $1 AND id = $2 RETURNING id
"""
_DELETE = "DELETE FROM memory.folders WHERE organization_id = $1 AND id = $2 RETURNING id"
_EMPTY = """
WITH gone AS (
    DELETE FROM memory.files WHERE (organization_id, id) IN (
        SELECT organization_id, id FROM memory.files f
        WHERE f.organization_id = $1 AND f.folder_id = $2
            AND NOT EXISTS (SELECT FROM memory.folders d WHERE d.organization_id = $1 AND d.id = $2)
        LIMIT $3)
    RETURNING upload_id
), bytes AS (
    DELETE FROM memory.file_uploads u USING gone WHERE u.organization_id = $1 AND u.upload_id = gone.upload_id
)
SELECT count(*) FROM gone
"""
_COUNT = """
SELECT (SELECT count(*) FROM memory.folders WHERE organization_id = $1) AS folders, count(*) AS files,
    coalesce(sum(f.size), 0)::bigint AS total_size
FROM memory.files f JOIN memory.folders d ON d.organization_id = f.organization_id AND d.id = f.folder_id
WHERE f.organization_id = $1
"""

_KEYSET = Keyset(folders, "source")


class PostgresFolders:
    """`FolderStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._engine = engine

    async def create(self, organization_id: UUID, user_id: UUID, draft: FolderDraft) -> Folder:
        archive = (organization_id, draft.id, draft.name, draft.embedding or None, user_id)
        values = (draft.name, draft.description, draft.instructions, draft.metadata, user_id)
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                if await connection.fetchval(_NEW_ARCHIVE, *archive) is not None:
                    await connection.execute(_NEW_FOLDER, organization_id, draft.id, *values)
        except asyncpg.UniqueViolationError:
            raise _name_taken(draft.name) from None
        stored = await self._pool.fetchrow(_GET, organization_id, draft.id)
        if stored is None or not _is_of(folder_of_row(stored), draft):
            raise AlreadyExists(
                f"the id source-{draft.id} belongs to something else; mint a new one", reason="FOLDER_NAME_TAKEN"
            )
        return folder_of_row(stored)

    async def get(self, organization_id: UUID, folder_id: UUID) -> Folder:
        return await _get(self._pool, organization_id, folder_id)

    async def update(self, organization_id: UUID, user_id: UUID, folder_id: UUID, changes: Mapping[str, Any]) -> Folder:
        values = Values(organization_id, folder_id, user_id)
        try:
            if not await self._pool.fetchval(_UPDATE.format(changes=values.assign(changes)), *values.all):
                raise no_such_folder(folder_id)
        except asyncpg.UniqueViolationError:
            raise _name_taken(changes["name"]) from None
        return await _get(self._pool, organization_id, folder_id)

    async def delete(self, organization_id: UUID, folder_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_DELETE, organization_id, folder_id):
                raise no_such_folder(folder_id)
            await erase_archive(connection, organization_id, folder_id, kind=2)
            await add_job(connection, organization_id, FOLDER_JOB, str(folder_id))

    async def empty(self, organization_id: UUID, folder_id: UUID) -> bool:
        return bool(await self._pool.fetchval(_EMPTY, organization_id, folder_id, _PORTION))

    async def count(self, organization_id: UUID) -> tuple[int, int, int]:
        row = await self._pool.fetchrow(_COUNT, organization_id)
        return row["folders"], row["files"], row["total_size"]

    async def list(
        self, organization_id: UUID, page: Page, *, name: str | None = None, name_search: str = ""
    ) -> PageOf[Folder]:
        file_count = (
            select(func.count())
            .where(files.c.organization_id == folders.c.organization_id, files.c.folder_id == folders.c.id)
            .scalar_subquery()
        )
        of_folder = (archives.c.organization_id == folders.c.organization_id) & (archives.c.id == folders.c.id)
        query = (
            select(
                *folders.c, func.coalesce(archives.c.embedding, "").label("embedding"), file_count.label("file_count")
            )
            .join(archives, of_folder)
            .where(folders.c.organization_id == organization_id)
        )
        if name is not None:
            query = query.where(folders.c.name == name)
        if name_search:
            query = query.where(folders.c.name.icontains(name_search, autoescape=True))
        async with self._engine.connect() as connection:
            result = await _KEYSET.page(connection, query, page, organization_id)
        return PageOf(tuple(folder_of_row(row._asdict()) for row in result.items), result.next_token)


async def _get(executor: Any, organization_id: UUID, folder_id: UUID) -> Folder:
    row = await executor.fetchrow(_GET, organization_id, folder_id)
    if row is None:
        raise no_such_folder(folder_id)
    return folder_of_row(row)


def _is_of(stored: Folder, draft: FolderDraft) -> bool:
    names = ("name", "description", "instructions", "metadata", "embedding")
    return all(getattr(stored, name) == getattr(draft, name) for name in names)


def _name_taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"there is a folder named {name!r}; choose another name", reason="FOLDER_NAME_TAKEN")


def folder_of_row(row: Row) -> Folder:
    """Returns the folder in a row with FOLDER_COLUMNS."""
    return record(Folder, row)


def no_such_folder(folder_id: UUID) -> NotFound:
    """Returns the error for an id that names no folder of the tenant."""
    return NotFound(f"Folder source-{folder_id} not found", reason="FOLDER_NOT_FOUND")
