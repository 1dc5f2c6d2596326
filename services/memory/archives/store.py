"""Archives on Postgres."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.records import record
from services.common.errors import AlreadyExists, NotFound
from services.memory.archives.model import Archive, ArchiveDraft, EmbeddingModel
from services.memory.archives.tables import archives
from services.memory.jobs.store import add_job
from services.memory.sql.columns import select_list
from services.memory.sql.rows import Row
from services.memory.sql.statements import Values

ERASE_JOB = "erase_archive"
# Passages that are erased in one statement: a few tenths of a second with their vectors.
_PORTION = 1_000

ARCHIVE_COLUMNS = f"{select_list('a', Archive, archives)}, a.model_id, e.handle, e.dimensions"


def archive_of_row(row: Row) -> Archive:
    """Returns the archive in a row with ARCHIVE_COLUMNS."""
    model = None
    if row["model_id"] is not None:
        model = EmbeddingModel(id=row["model_id"], handle=row["handle"], dimensions=row["dimensions"])
    return record(Archive, {**row, "model": model})


_MODEL = "SELECT id FROM memory.embedding_models WHERE handle = $1 AND dimensions = $2"
_NEW_MODEL = "INSERT INTO memory.embedding_models (handle, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING"


async def embedding_model_id(pool: asyncpg.Pool, handle: str, dimensions: int) -> int:
    """Returns the number of a model, and stores it if it is new. Rows of this table never change."""
    number = await pool.fetchval(_MODEL, handle, dimensions)
    if number is None:
        await pool.execute(_NEW_MODEL, handle, dimensions)
        number = await pool.fetchval(_MODEL, handle, dimensions)
    assert isinstance(number, int)
    return number


_GET = f"""
SELECT {ARCHIVE_COLUMNS}
FROM memory.archives a LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE a.organization_id = $1 AND a.id = $2 AND a.kind = 1
"""
_CREATE = """
INSERT INTO memory.archives (
    organization_id, id, name, description, embedding, metadata, created_by_id, last_updated_by_id, model_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)
ON CONFLICT (organization_id, id) DO NOTHING
RETURNING id
"""
_UPDATE = """
UPDATE memory.archives SET {changes}last_updated_by_id = $3, updated_at = now()
WHERE organization_id = $1 AND id = $2 AND kind = 1
"""

# Whoever changes a passage locks it before its archive, so what is erased with the archive is locked first.
_LOCK_FEW = """
SELECT id FROM memory.passages
WHERE organization_id = $1 AND archive_id = $2
    AND (SELECT passage_count FROM memory.archives WHERE organization_id = $1 AND id = $2) <= $3
ORDER BY id FOR UPDATE
"""
_DETACH_ALL = "DELETE FROM memory.agent_archives WHERE organization_id = $1 AND archive_id = $2"
# The number tells whether it is small enough to be erased at once.
_CONDEMN = """
UPDATE memory.archives SET kind = 3 WHERE organization_id = $1 AND id = $2 AND kind = $3 RETURNING passage_count
"""
_ERASE_PORTION = """
DELETE FROM memory.passages WHERE (organization_id, archive_id, id) IN (
    SELECT organization_id, archive_id, id FROM memory.passages
    WHERE organization_id = $1 AND archive_id = $2 LIMIT $3)
"""
_ERASE = """
WITH sample AS (DELETE FROM memory.word_samples WHERE organization_id = $1 AND scope_id = $2)
DELETE FROM memory.archives WHERE organization_id = $1 AND id = $2 AND kind = 3
"""

# Waits for a deletion that is under way, as that waits for this.
_EXISTS = "SELECT true FROM memory.archives WHERE organization_id = $1 AND id = $2 AND kind = 1 FOR SHARE"
_ATTACH = """
INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id, is_default)
VALUES ($1, $2, $3, $4 AND NOT EXISTS (
    SELECT FROM memory.agent_archives m WHERE m.organization_id = $1 AND m.agent_id = $2 AND m.is_default))
ON CONFLICT DO NOTHING
"""
_DETACH = """
DELETE FROM memory.agent_archives WHERE organization_id = $1 AND agent_id = $2 AND archive_id = $3 RETURNING true
"""
_AGENTS = """
SELECT agent_id FROM memory.agent_archives WHERE organization_id = $1 AND archive_id = $2 ORDER BY attached_at, agent_id
"""


class PostgresArchives:
    """`ArchiveStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def get(self, organization_id: UUID, archive_id: UUID) -> Archive:
        row = await self._pool.fetchrow(_GET, organization_id, archive_id)
        if row is None:
            raise no_such_archive(archive_id)
        return archive_of_row(row)

    async def create(self, organization_id: UUID, user_id: UUID, draft: ArchiveDraft) -> Archive:
        values = draft.name, draft.description, draft.embedding or None, draft.metadata
        model = await embedding_model_id(self._pool, draft.embedding, draft.dimensions) if draft.dimensions else None
        created_id = await self._pool.fetchval(_CREATE, organization_id, draft.id, *values, user_id, model)
        error = AlreadyExists(f"the id archive-{draft.id} is taken", reason="ARCHIVE_ID_TAKEN")
        row = await self._pool.fetchrow(_GET, organization_id, draft.id)
        if row is None:
            raise error
        archive = archive_of_row(row)
        stored_values = archive.name, archive.description, archive.embedding, archive.metadata
        if created_id is None and (stored_values != values or not _as_long(archive, draft)):
            raise error
        return archive

    async def update(
        self, organization_id: UUID, user_id: UUID, archive_id: UUID, changes: Mapping[str, Any]
    ) -> Archive:
        values = Values(organization_id, archive_id, user_id)
        await self._pool.execute(_UPDATE.format(changes=values.assign(changes)), *values.all)
        return await self.get(organization_id, archive_id)

    async def delete(self, organization_id: UUID, archive_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await erase_archive(connection, organization_id, archive_id):
                raise no_such_archive(archive_id)

    async def erase(self, organization_id: UUID, archive_id: UUID) -> bool:
        done: str = await self._pool.execute(_ERASE_PORTION, organization_id, archive_id, _PORTION)
        if done == f"DELETE {_PORTION}":
            return True
        await self._pool.execute(_ERASE, organization_id, archive_id)
        return False

    async def attach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_EXISTS, organization_id, archive_id):
                raise no_such_archive(archive_id)
            await connection.execute(_ATTACH, organization_id, agent_id, archive_id, True)
            # Where another became the default at the same time, the first statement did nothing.
            await connection.execute(_ATTACH, organization_id, agent_id, archive_id, False)

    async def detach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        if not await self._pool.fetchval(_DETACH, organization_id, agent_id, archive_id):
            raise NotFound(f"archive-{archive_id} is not attached to agent-{agent_id}", reason="ARCHIVE_NOT_ATTACHED")

    async def agents_of(self, organization_id: UUID, archive_id: UUID) -> list[UUID]:
        await self.get(organization_id, archive_id)
        return [row["agent_id"] for row in await self._pool.fetch(_AGENTS, organization_id, archive_id)]


def _as_long(archive: Archive, draft: ArchiveDraft) -> bool:
    return not draft.dimensions or (archive.model is not None and archive.model.dimensions == draft.dimensions)


async def erase_archive(connection: Any, organization_id: UUID, archive_id: UUID, *, kind: int = 1) -> bool:
    """Takes an archive out of every search and list, and erases it; False where there is none. In a transaction.

    One of many passages is erased by a job, in portions: nobody waits for that, and nothing is locked meanwhile.
    kind: 1, or 2 for that of a folder.
    """
    await connection.execute(_LOCK_FEW, organization_id, archive_id, _PORTION)
    passages = await connection.fetchval(_CONDEMN, organization_id, archive_id, kind)
    if passages is None:
        return False
    await connection.execute(_DETACH_ALL, organization_id, archive_id)
    if passages > _PORTION:
        await add_job(connection, organization_id, ERASE_JOB, str(archive_id))
    else:
        await connection.execute(_ERASE, organization_id, archive_id)
    return True


def no_such_archive(archive_id: UUID) -> NotFound:
    """Returns the error for an id that names no archive of the tenant."""
    return NotFound(f"Archive archive-{archive_id} not found", reason="ARCHIVE_NOT_FOUND")
