"""`JobStore` on Postgres."""

from uuid import UUID

import asyncpg

from services.common.ids import uuid7
from services.memory.jobs.model import LEASE_SECONDS, Job, Reschedule

_ADD = """
INSERT INTO memory.jobs (id, organization_id, kind, subject, not_before)
VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))
ON CONFLICT ON CONSTRAINT jobs_one_per_subject DO UPDATE
SET not_before = least(jobs.not_before, excluded.not_before), again = jobs.leased_until IS NOT NULL
"""
_DUE = """
    SELECT id FROM memory.jobs
    WHERE not_before <= now() AND (leased_until IS NULL OR leased_until < now()) {of_whom}
    ORDER BY not_before LIMIT 1 FOR UPDATE SKIP LOCKED"""
# Tenants of whom nothing runs come first: the many jobs of one do not hold up the one of another.
_OF_WHOM = "AND organization_id NOT IN (SELECT organization_id FROM memory.jobs WHERE leased_until >= now())"
_CLAIM = f"""
UPDATE memory.jobs SET worker_id = $1, leased_until = now() + make_interval(secs => $2), again = false
WHERE id = coalesce(({_DUE.format(of_whom=_OF_WHOM)}), ({_DUE.format(of_whom="")}))
RETURNING id, organization_id, kind, subject, failures
"""
_RENEW = """
UPDATE memory.jobs SET leased_until = now() + make_interval(secs => $3)
WHERE id = $1 AND worker_id = $2 RETURNING true
"""
_FINISH = "DELETE FROM memory.jobs WHERE id = $1 AND worker_id = $2 AND NOT again"
_POSTPONE = """
UPDATE memory.jobs
SET worker_id = NULL, leased_until = NULL, again = false, failures = CASE WHEN $4 THEN failures + 1 ELSE 0 END,
    not_before = CASE WHEN again THEN now() ELSE now() + make_interval(secs => $3) END
WHERE id = $1 AND worker_id = $2
"""
_WITHDRAW = """
DELETE FROM memory.jobs WHERE organization_id = $1 AND kind = $2 AND subject = $3 AND worker_id IS NULL RETURNING true
"""


class PostgresJobs:
    """`JobStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def add(self, organization_id: UUID, kind: str, subject: str, *, seconds: float = 0.0) -> None:
        await add_job(self._pool, organization_id, kind, subject, seconds=seconds)

    async def claim(self, worker_id: UUID) -> Job | None:
        row = await self._pool.fetchrow(_CLAIM, worker_id, LEASE_SECONDS)
        return None if row is None else Job(**row)

    async def renew(self, job: Job, worker_id: UUID) -> bool:
        return await self._pool.fetchval(_RENEW, job.id, worker_id, LEASE_SECONDS) is not None

    async def finish(self, job: Job, worker_id: UUID) -> None:
        if await self._pool.execute(_FINISH, job.id, worker_id) == "DELETE 0":
            await self.postpone(job, worker_id, Reschedule(0.0))

    async def postpone(self, job: Job, worker_id: UUID, later: Reschedule) -> None:
        await self._pool.execute(_POSTPONE, job.id, worker_id, later.seconds, later.failed)


async def add_job(
    executor: asyncpg.Pool | asyncpg.Connection, organization_id: UUID, kind: str, subject: str, *, seconds: float = 0.0
) -> None:
    """Asks for work within the caller's transaction; see `JobStore.add`."""
    await executor.execute(_ADD, uuid7(), organization_id, kind, subject, seconds)


async def withdraw_job(connection: asyncpg.Connection, organization_id: UUID, kind: str, subject: str) -> bool:
    """Takes work back within the caller's transaction; False where it is not asked for, or somebody has it."""
    return await connection.fetchval(_WITHDRAW, organization_id, kind, subject) is not None
