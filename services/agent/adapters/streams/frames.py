"""Stored streams in Postgres: rows of frames in a partition for each hour. Retention drops partitions, never rows."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from services.agent.core.ports_streams import Flush, RunPlace, StreamSnapshot
from services.agent.core.stored_stream import (
    SCHEMA_VERSION,
    Frame,
    frames_from_json,
    frames_to_json,
    last_position,
    position,
)
from services.agent.postgres.rows import SHOWN_KINDS
from services.common.errors import NotFound

HOUR = timedelta(hours=1)
_PREFIX = "run_frames_"
_LOCK = zlib.crc32(b"loci.agent.run_frames")

# One statement, which is its own transaction: what is lost with the server's memory is deltas. $1 rows as arrays
_APPEND = """
WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO agent.run_frames (organization_id, run_hour, run_id, first_sequence, last_sequence, schema_version, frames)
SELECT f.organization_id, f.run_hour, f.run_id, f.first_sequence, f.last_sequence, $7, f.frames
FROM quick, unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::bigint[], $5::bigint[], $6::json[])
    AS f(organization_id, run_hour, run_id, first_sequence, last_sequence, frames)
ON CONFLICT (organization_id, run_hour, run_id, first_sequence) DO UPDATE
SET last_sequence = excluded.last_sequence, frames = excluded.frames
WHERE run_frames.last_sequence < excluded.last_sequence
"""

# The last fact that a reader has seen something of may be half seen; the one before it is not. $1 organization, $2 run,
# $3 position, $4 kinds of facts that are shown
_PLACE = """
SELECT date_trunc('hour', r.created_at, 'UTC') AS run_hour, r.background, coalesce((
    SELECT f.sequence FROM agent.facts f
    WHERE f.organization_id = $1 AND f.run_id = $2 AND f.sequence <= $3 AND f.kind = ANY($4::text[])
    ORDER BY f.number DESC OFFSET 1 LIMIT 1), 0) AS known_from
FROM agent.runs r WHERE r.organization_id = $1 AND r.id = $2
"""

# $1 organization, $2 run, $3 hour, $4 position, $5 what the reader has seen before, $6 schema version
_LOOK = """
SELECT r.facts, r.completed_at IS NOT NULL AS ended, ARRAY(
    SELECT f.frames FROM agent.run_frames f
    WHERE f.organization_id = $1 AND f.run_hour = $3 AND f.run_id = $2 AND f.schema_version <= $6
        AND f.first_sequence >= coalesce((
            SELECT max(e.first_sequence) FROM agent.run_frames e
            WHERE e.organization_id = $1 AND e.run_hour = $3 AND e.run_id = $2 AND e.first_sequence <= $4), 0)
        AND (f.first_sequence <= $5 OR f.last_sequence >= coalesce((
            SELECT a.sequence FROM agent.facts a WHERE a.organization_id = $1 AND a.run_id = $2
            ORDER BY a.number DESC LIMIT 1), 0))
    ORDER BY f.first_sequence) AS frames
FROM agent.runs r WHERE r.organization_id = $1 AND r.id = $2
"""

_HOURS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'agent.run_frames'::regclass
"""


class PostgresFrames:
    """`core.ports_streams.FrameStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def append(self, flushes: Sequence[Flush]) -> None:
        columns = zip(*map(_row, flushes), strict=True)
        await self._pool.execute(_APPEND, *columns, SCHEMA_VERSION)

    async def place(self, organization_id: UUID, run_id: UUID, after: int) -> RunPlace:
        row = await self._pool.fetchrow(_PLACE, organization_id, run_id, after, list(SHOWN_KINDS))
        if row is None:
            raise _no_run(run_id)
        return RunPlace(row["run_hour"], row["background"], min(row["known_from"], after))

    async def look(
        self, organization_id: UUID, run_id: UUID, run_hour: datetime, position: int, after: int
    ) -> StreamSnapshot:
        row = await self._pool.fetchrow(_LOOK, organization_id, run_id, run_hour, position, after, SCHEMA_VERSION)
        if row is None:
            raise _no_run(run_id)
        frames: list[Frame] = [frame for stored in row["frames"] for frame in frames_from_json(stored, run_id)]
        return StreamSnapshot(row["facts"], row["ended"], frames)

    async def add_hours(self, hours: Sequence[datetime]) -> None:
        present = await self._present()
        for hour in hours:
            if hour not in present:
                await self._add(hour)

    async def drop_hours(self, before: datetime) -> int:
        old = sorted(hour for hour in await self._present() if hour + HOUR <= before)
        for hour in old:
            async with self._pool.acquire() as connection, connection.transaction():
                await _lock_partitions(connection)
                await connection.execute(f"DROP TABLE IF EXISTS agent.{_name(hour)}")
        return len(old)

    async def _add(self, hour: datetime) -> None:
        """Makes a table and then attaches it: readers and writers of the others do not wait."""
        name, until = _name(hour), hour + HOUR
        async with self._pool.acquire() as connection, connection.transaction():
            await _lock_partitions(connection)
            if await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"agent.{name}"):
                return
            await connection.execute(f"CREATE TABLE agent.{name} (LIKE agent.run_frames INCLUDING ALL)")
            await connection.execute(
                f"ALTER TABLE agent.run_frames ATTACH PARTITION agent.{name}"
                f" FOR VALUES FROM ('{hour.isoformat()}') TO ('{until.isoformat()}')"
            )

    async def _present(self) -> set[datetime]:
        names = [row["relname"] for row in await self._pool.fetch(_HOURS)]
        return {datetime.strptime(name, f"{_PREFIX}%Y%m%d%H").replace(tzinfo=UTC) for name in names}


def _name(hour: datetime) -> str:
    return f"{_PREFIX}{hour:%Y%m%d%H}"


async def _lock_partitions(connection: Any) -> None:
    """Takes a lock: every replica looks after the partitions, one at a time changes them, and none waits for long."""
    await connection.execute("SET LOCAL lock_timeout = '2s'")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)


def _row(flush: Flush) -> tuple[Any, ...]:
    first, last = position(flush.frames[0]), last_position(flush.frames[-1])
    ids = (flush.organization_id, flush.run_hour, flush.run_id)
    # Serialized: a list among the elements of an array would be taken for another dimension.
    return (*ids, first, last, orjson.Fragment(orjson.dumps(frames_to_json(flush.frames))))


def _no_run(run_id: UUID) -> NotFound:
    return NotFound(f"there is no run run-{run_id}", reason="RUN_NOT_FOUND")
