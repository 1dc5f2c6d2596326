"""`ChangeStore` on Postgres: changes as rows, and how they are decided.

Locks are taken in one order: passages, archive, change. Rows of passages are not waited for: what others have locked
is left for the next look.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.statements import Statement
from services.common.errors import NotFound
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ports.embedding_changes import LockedChange
from services.memory.embedding_changes.model import (
    ArchiveState,
    ChangeState,
    Decide,
    EmbeddingChange,
    ModelCoverage,
    PassageCheck,
    Position,
    Progress,
    Target,
    TextToEmbed,
    TextVector,
    switch_change,
)
from services.memory.embedding_changes.store import vectors
from services.memory.jobs.store import add_job
from services.memory.sql.rows import Row

JOB_KIND = "embedding_change"

_COLUMNS = (
    "c.id, c.archive_id, c.from_embedding, c.from_model_id, c.to_embedding, c.to_model_id, c.state, c.rolling_back, "
    "c.error, c.reached_at, c.reached_id"
)
# A kind of 3 is an archive that was deleted, and goes in portions.
_NEWEST = f"""
SELECT {_COLUMNS} FROM memory.embedding_changes c
JOIN memory.archives a ON a.organization_id = c.organization_id AND a.id = c.archive_id AND a.kind < 3
WHERE c.organization_id = $1 AND c.archive_id = $2 ORDER BY c.id DESC LIMIT 1"""
_RUNNING = f"""
SELECT {_COLUMNS} FROM memory.embedding_changes c
WHERE c.organization_id = $1 AND c.archive_id = $2 AND c.id = $3 AND c.state = 1 FOR UPDATE"""
_PROGRESS = f"""
SELECT {_COLUMNS}, c.created_at, c.updated_at, c.completed_at, a.passage_count AS total,
    (SELECT count(*) FROM memory.passage_vectors v
        WHERE v.organization_id = $1 AND v.archive_id = $2 AND v.model_id = c.to_model_id)
    + (SELECT count(*) FROM memory.embedding_blanks b
        WHERE b.organization_id = $1 AND b.archive_id = $2 AND b.model_id = c.to_model_id) AS embedded
FROM memory.embedding_changes c
JOIN memory.archives a ON a.organization_id = c.organization_id AND a.id = c.archive_id AND a.kind = $3
WHERE c.organization_id = $1 AND c.archive_id = $2 ORDER BY c.id DESC LIMIT 1
"""
_EXISTS = "SELECT true FROM memory.archives WHERE organization_id = $1 AND id = $2 AND kind = $3"
_ARCHIVE = """
SELECT embedding, model_id FROM memory.archives WHERE organization_id = $1 AND id = $2 AND kind < 3 FOR UPDATE
"""
_SWITCH = "UPDATE memory.archives SET embedding = $3, model_id = $4 WHERE organization_id = $1 AND id = $2"
_BEGIN = """
INSERT INTO memory.embedding_changes (organization_id, archive_id, id, created_by_id) VALUES ($1, $2, $3, $4)
"""
# `completed_at` is when searches began to use the model after, and stays when it is taken back.
_UPDATE = Statement("""
UPDATE memory.embedding_changes c
SET from_embedding = :from_embedding, from_model_id = :from_model_id, to_embedding = :to_embedding,
    to_model_id = :to_model_id, state = :state, rolling_back = :rolling_back, error = nullif(:error, ''),
    reached_at = :reached_at, reached_id = :reached_id, updated_at = now(),
    completed_at = CASE WHEN :state = 2::smallint THEN coalesce(c.completed_at, now()) ELSE c.completed_at END
WHERE c.organization_id = :organization_id AND c.archive_id = :archive_id AND c.id = :id
""")
_REACHED = """
UPDATE memory.embedding_changes SET reached_at = $4, reached_id = $5, error = NULL, updated_at = now()
WHERE organization_id = $1 AND archive_id = $2 AND id = $3 AND state = $6 RETURNING true
"""
_FAILED = """
UPDATE memory.embedding_changes SET error = $4, updated_at = now()
WHERE organization_id = $1 AND archive_id = $2 AND id = $3 AND state = 1
"""
_WITH_MODEL = """
UPDATE memory.embedding_changes SET to_model_id = $4
WHERE organization_id = $1 AND archive_id = $2 AND id = $3 AND state = 1 AND to_model_id IS NULL
"""
_LONGEST_ERROR = 2_000


class PostgresEmbeddingChanges:
    """`ChangeStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def progress(self, organization_id: UUID, archive_id: UUID, *, folder: bool) -> Progress | None:
        row = await self._pool.fetchrow(_PROGRESS, organization_id, archive_id, _kind(folder))
        if row is None:
            return None
        names = ("embedded", "total", "created_at", "updated_at", "completed_at")
        return Progress(change=_change(row), **{name: row[name] for name in names})

    async def newest(self, organization_id: UUID, archive_id: UUID) -> EmbeddingChange | None:
        row = await self._pool.fetchrow(_NEWEST, organization_id, archive_id)
        return None if row is None else _change(row)

    async def exists(self, organization_id: UUID, archive_id: UUID, *, folder: bool) -> bool:
        return await self._pool.fetchval(_EXISTS, organization_id, archive_id, _kind(folder)) is not None

    async def decide(self, organization_id: UUID, user_id: UUID, archive_id: UUID, decide: Decide) -> EmbeddingChange:
        async with self._pool.acquire() as connection, connection.transaction():
            archive = await connection.fetchrow(_ARCHIVE, organization_id, archive_id)
            if archive is None:
                raise NotFound("the archive was deleted meanwhile", reason="ARCHIVE_NOT_FOUND")
            row = await connection.fetchrow(f"{_NEWEST} FOR UPDATE OF c", organization_id, archive_id)
            newest = None if row is None else _change(row)
            change = decide(ArchiveState(now=_now(archive), newest=newest))
            if newest is None or change.id != newest.id:
                await connection.execute(_BEGIN, organization_id, archive_id, change.id, user_id)
            if change != newest:
                await connection.execute(*_update(organization_id, change))
            if change.state is not ChangeState.COMPLETED:
                await add_job(connection, organization_id, JOB_KIND, str(archive_id))
        return change

    async def record_failure(self, organization_id: UUID, change: EmbeddingChange, error: str) -> None:
        error = error.replace("\0", "")[:_LONGEST_ERROR]
        await self._pool.execute(_FAILED, organization_id, change.archive_id, change.id, error)

    async def set_model(self, organization_id: UUID, change: EmbeddingChange, model_id: int) -> None:
        await self._pool.execute(_WITH_MODEL, organization_id, change.archive_id, change.id, model_id)

    async def walk(self, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[PassageCheck]:
        return await vectors.walk(self._pool, organization_id, change, limit)

    async def lacking(self, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[UUID]:
        async with self._pool.acquire() as connection, connection.transaction():
            return await vectors.lacking(connection, organization_id, change, limit)

    async def texts(self, organization_id: UUID, archive_id: UUID, passage_ids: Sequence[UUID]) -> list[TextToEmbed]:
        return await vectors.texts(self._pool, organization_id, archive_id, passage_ids)

    async def write(
        self,
        organization_id: UUID,
        change: EmbeddingChange,
        new_vectors: Sequence[TextVector],
        position: Position | None,
    ) -> bool:
        place = position or (None, None)
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                await vectors.write(connection, organization_id, change, new_vectors)
                where = (organization_id, change.archive_id, change.id)
                if await connection.fetchval(_REACHED, *where, *place, change.state) is None:
                    raise _ChangeStopped
        except _ChangeStopped:
            return False
        return True

    @asynccontextmanager
    async def lock(self, organization_id: UUID, change: EmbeddingChange) -> AsyncIterator[LockedChange | None]:
        async with self._pool.acquire() as connection, connection.transaction():
            archive = await connection.fetchrow(_ARCHIVE, organization_id, change.archive_id)
            row = await connection.fetchrow(_RUNNING, organization_id, change.archive_id, change.id)
            if archive is None or row is None:
                yield None
            else:
                yield _LockedChange(connection, organization_id, _change(row), _now(archive))

    async def needs_index(self, organization_id: UUID, change: EmbeddingChange) -> bool:
        return await vectors.needs_index(self._pool, organization_id, change)

    async def erase(self, organization_id: UUID, change: EmbeddingChange, start: UUID, limit: int) -> UUID | None:
        return await vectors.erase(self._pool, organization_id, change, start, limit)

    async def alternatives(
        self, organization_id: UUID, archive_ids: Sequence[UUID] | None, model: EmbeddingModel
    ) -> list[ModelCoverage]:
        return await vectors.alternatives(self._pool, organization_id, archive_ids, model)


class _ChangeStopped(Exception):
    """The change was taken back meanwhile; what was written with it is, too."""


class _LockedChange:
    """`LockedChange`."""

    def __init__(self, connection: Any, organization_id: UUID, change: EmbeddingChange, now: Target) -> None:
        self._connection = connection
        self._organization_id = organization_id
        self._change = change
        self._now = now

    async def lacking(self, limit: int) -> list[UUID]:
        return await vectors.lacking(self._connection, self._organization_id, self._change, limit)

    async def switch(self) -> None:
        after = self._change.after
        where = (self._organization_id, self._change.archive_id)
        await self._connection.execute(_SWITCH, *where, after.embedding, after.model_id)
        change = switch_change(self._change, self._now)
        await self._connection.execute(*_update(self._organization_id, change))


def _change(row: Row) -> EmbeddingChange:
    reached = None if row["reached_at"] is None else Position(row["reached_at"], row["reached_id"])
    return EmbeddingChange(
        id=row["id"],
        archive_id=row["archive_id"],
        before=Target(embedding=row["from_embedding"], model_id=row["from_model_id"]),
        after=Target(embedding=row["to_embedding"], model_id=row["to_model_id"]),
        state=ChangeState(row["state"]),
        rolling_back=row["rolling_back"],
        error=row["error"] or "",
        reached=reached,
    )


def _update(organization_id: UUID, change: EmbeddingChange) -> tuple[Any, ...]:
    """Returns the statement that stores a change, and its parameters."""
    reached_at, reached_id = change.reached or (None, None)
    return _UPDATE.bind(
        organization_id=organization_id,
        archive_id=change.archive_id,
        id=change.id,
        from_embedding=change.before.embedding,
        from_model_id=change.before.model_id,
        to_embedding=change.after.embedding,
        to_model_id=change.after.model_id,
        state=change.state,
        rolling_back=change.rolling_back,
        error=change.error,
        reached_at=reached_at,
        reached_id=reached_id,
    )


def _kind(folder: bool) -> int:
    return 2 if folder else 1


def _now(row: Row) -> Target:
    return Target(embedding=row["embedding"], model_id=row["model_id"])
