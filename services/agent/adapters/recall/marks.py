"""`core.ports_recall.VectorStore` on Postgres: logs that lack vectors, and vectors."""

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

import asyncpg

from services.agent.core.messages import Message
from services.agent.core.ports_recall import EmbeddingModel, LogClaim, LogKey, LogProgress, Page
from services.agent.postgres.rows import message_from_row
from services.common.vectors import encode

# Longer than the slowest batch.
LEASE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 300.0
# Logs of one look, and how long after it the next one may be: after the last logs later, they are looked at anew.
_LOGS_AT_ONCE = 500
_PAUSE_SECONDS, _ROUND_SECONDS = 2.0, 20.0
_BEGINNING, _END = UUID(int=0), UUID(int=2**128 - 1)

_LOGS_OF = """
SELECT h.organization_id, h.log_id FROM unnest($1::uuid[], $2::uuid[]) AS one (organization_id, conversation_id)
JOIN agent.conversation_heads h USING (organization_id, conversation_id)
"""

_SWEEP = "SELECT organization_id, log_id FROM agent.vector_sweep WHERE next_at <= now() FOR UPDATE SKIP LOCKED"
_SWEPT = "UPDATE agent.vector_sweep SET organization_id = $1, log_id = $2, next_at = now() + make_interval(secs => $3)"
# The next logs by the key of their messages, one step down the index for each; those whose newest message is beyond
# their mark, or whose agent has another model by now. $1, $2: the last one looked at, $3 most
_PAGE = """
WITH RECURSIVE logs AS (
    (SELECT organization_id, log_id FROM agent.messages
     WHERE (organization_id, log_id) > ($1, $2) ORDER BY organization_id, log_id LIMIT 1)
    UNION ALL
    SELECT further.organization_id, further.log_id FROM logs CROSS JOIN LATERAL (
        SELECT m.organization_id, m.log_id FROM agent.messages m
        WHERE (m.organization_id, m.log_id) > (logs.organization_id, logs.log_id)
        ORDER BY m.organization_id, m.log_id LIMIT 1) further
), page AS MATERIALIZED (SELECT * FROM logs LIMIT $3)
SELECT page.organization_id, page.log_id,
       coalesce(a.embedding <> '' AND coalesce(k.not_before <= now(), true)
                AND (k.seq IS NULL OR k.seq < newest.seq OR k.embedding <> a.embedding), false) AS due
FROM page CROSS JOIN LATERAL (
    SELECT m.agent_id, m.seq FROM agent.messages m
    WHERE m.organization_id = page.organization_id AND m.log_id = page.log_id ORDER BY m.seq DESC LIMIT 1) newest
LEFT JOIN agent.agents a
    ON a.organization_id = page.organization_id AND a.id = newest.agent_id AND a.deleted_at IS NULL
LEFT JOIN agent.vector_marks k ON k.organization_id = page.organization_id AND k.log_id = page.log_id
ORDER BY page.organization_id, page.log_id
"""
# Marks of logs that were erased, in the part just looked at. $1, $2: after this log, $3, $4: up to this one
_FORGET = """
DELETE FROM agent.vector_marks k
WHERE (k.organization_id, k.log_id) > ($1, $2) AND (k.organization_id, k.log_id) <= ($3, $4)
    AND NOT EXISTS (SELECT FROM agent.messages m WHERE m.organization_id = k.organization_id AND m.log_id = k.log_id)
"""

# All messages of a log are of one agent; another model of it begins anew. $1 organizations, $2 logs, $3 lease
_TAKE = """
INSERT INTO agent.vector_marks AS k (organization_id, log_id, agent_id, embedding, not_before, taken)
SELECT one.organization_id, one.log_id, a.id, a.embedding, now() + make_interval(secs => $3), 1
FROM unnest($1::uuid[], $2::uuid[]) AS one (organization_id, log_id)
CROSS JOIN LATERAL (
    SELECT m.agent_id FROM agent.messages m
    WHERE m.organization_id = one.organization_id AND m.log_id = one.log_id ORDER BY m.seq DESC LIMIT 1) newest
JOIN agent.agents a ON a.organization_id = one.organization_id AND a.id = newest.agent_id
    AND a.deleted_at IS NULL AND a.embedding <> ''
ORDER BY one.organization_id, one.log_id
ON CONFLICT (organization_id, log_id) DO UPDATE
SET seq = CASE WHEN k.embedding = excluded.embedding THEN k.seq ELSE 0 END, embedding = excluded.embedding,
    failures = CASE WHEN k.embedding = excluded.embedding THEN k.failures ELSE 0 END,
    not_before = excluded.not_before, taken = k.taken + 1
WHERE k.not_before <= now()
RETURNING k.organization_id, k.log_id, k.agent_id, k.embedding, k.seq, k.taken, k.failures
"""
# Pictures and thoughts are not embedded, and may be large. $4 most of each log
_MESSAGES = """
SELECT k.organization_id, k.log_id, m.id, m.role, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at,
       coalesce((SELECT jsonb_agg(part - 'images') FROM jsonb_array_elements(m.content) AS part
                 WHERE part ->> 'type' IN ('text', 'tool_call', 'tool_return')), '[]') AS content
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS k (organization_id, log_id, seq)
CROSS JOIN LATERAL (
    SELECT * FROM agent.messages m
    WHERE m.organization_id = k.organization_id AND m.log_id = k.log_id AND m.seq > k.seq ORDER BY m.seq LIMIT $4) m
ORDER BY k.organization_id, k.log_id, m.seq
"""
# $1 organization, $2 logs, $3 places, $4 who took them
_MOVE = """
UPDATE agent.vector_marks k SET seq = one.seq, failures = 0, not_before = now()
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS one (log_id, seq, taken)
WHERE k.organization_id = $1 AND k.log_id = one.log_id AND k.taken = one.taken
RETURNING k.log_id
"""
# $1 organization, $2 messages, $3 vectors, $4 model
_STORE = """
INSERT INTO agent.message_vectors (
    organization_id, message_id, agent_id, log_id, seq, role, created_at, model_id, embedding)
SELECT $1, m.id, m.agent_id, m.log_id, m.seq, m.role, m.created_at, $4, v.embedding
FROM unnest($2::uuid[], $3::halfvec[]) AS v (id, embedding)
JOIN agent.messages m ON m.organization_id = $1 AND m.id = v.id
ON CONFLICT (organization_id, message_id) DO UPDATE
SET model_id = excluded.model_id, embedding = excluded.embedding, waiting = true
"""
# $1 organization, $2 message
_REVISED = """
SELECT m.id, m.role, m.content, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at, a.embedding
FROM agent.messages m
JOIN agent.agents a ON a.organization_id = $1 AND a.id = m.agent_id AND a.deleted_at IS NULL AND a.embedding <> ''
WHERE m.organization_id = $1 AND m.id = $2
"""
# $1 organizations, $2 logs, $3 who took them, $4 pauses
_FAIL = """
UPDATE agent.vector_marks k SET failures = k.failures + 1, not_before = now() + make_interval(secs => one.pause)
FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::float8[]) AS one (organization_id, log_id, taken, pause)
WHERE k.organization_id = one.organization_id AND k.log_id = one.log_id AND k.taken = one.taken
"""

_MODEL = "SELECT id FROM agent.embedding_models WHERE handle = $1 AND dimensions = $2"
_NEW_MODEL = "INSERT INTO agent.embedding_models (handle, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING"


class PostgresVectors:
    """`core.ports_recall.VectorStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        # Rows of this table never change.
        self._models: dict[tuple[str, int], EmbeddingModel] = {}

    async def logs_of(self, conversations: Sequence[tuple[UUID, UUID]]) -> list[LogKey]:
        organizations, ids = [key[0] for key in conversations], [key[1] for key in conversations]
        return [LogKey(*row) for row in await self._pool.fetch(_LOGS_OF, organizations, ids)]

    async def sweep(self) -> Page | None:
        async with self._pool.acquire() as connection, connection.transaction():
            place = await connection.fetchrow(_SWEEP)
            if place is None:
                return None
            rows = await connection.fetch(_PAGE, *place, _LOGS_AT_ONCE)
            ended = len(rows) < _LOGS_AT_ONCE
            last = (_END, _END) if ended else (rows[-1]["organization_id"], rows[-1]["log_id"])
            await connection.execute(_FORGET, *place, *last)
            if ended:
                last = (_BEGINNING, _BEGINNING)
            await connection.execute(_SWEPT, *last, _ROUND_SECONDS if ended else _PAUSE_SECONDS)
        return Page(tuple(LogKey(row["organization_id"], row["log_id"]) for row in rows if row["due"]), ended)

    async def take(self, logs: Sequence[LogKey]) -> list[LogClaim]:
        organizations, ids = [key.organization_id for key in logs], [key.log_id for key in logs]
        rows = await self._pool.fetch(_TAKE, organizations, ids, LEASE_SECONDS)
        return [LogClaim(LogKey(*row[:2]), *row[2:]) for row in map(tuple, rows)]

    async def messages(self, taken: Sequence[LogClaim], most: int) -> dict[LogKey, list[Message]]:
        organizations = [log.key.organization_id for log in taken]
        rows = await self._pool.fetch(
            _MESSAGES, organizations, [log.key.log_id for log in taken], [log.seq for log in taken], most
        )
        by_log = groupby(rows, lambda row: LogKey(row["organization_id"], row["log_id"]))
        return {key: [message_from_row(row) for row in some] for key, some in by_log}

    async def store(self, handle: str, done: Sequence[LogProgress]) -> None:
        organization_id = done[0].log.key.organization_id
        marks = sorted((each.log.key.log_id, each.seq, each.log.taken) for each in done)
        vectors = {each.log.key.log_id: each.vectors for each in done}
        dimensions = {len(vector) for some in vectors.values() for vector in some.values()}
        models = {length: await self._model(handle, length) for length in dimensions}
        async with self._pool.acquire() as connection, connection.transaction():
            columns = map(list, zip(*marks, strict=True))
            moved = {row["log_id"] for row in await connection.fetch(_MOVE, organization_id, *columns)}
            for length, model in models.items():
                mine = {
                    message_id: encode(vector)
                    for log_id in moved
                    for message_id, vector in vectors[log_id].items()
                    if len(vector) == length
                }
                await connection.execute(_STORE, organization_id, list(mine), list(mine.values()), model.id)

    async def message_to_embed(self, organization_id: UUID, message_id: UUID) -> tuple[Message, str] | None:
        """See `resources.messages.embedding.MessageVectorStore`."""
        row = await self._pool.fetchrow(_REVISED, organization_id, message_id)
        return None if row is None else (message_from_row(row), row["embedding"])

    async def keep(self, organization_id: UUID, handle: str, message_id: UUID, vector: Sequence[float]) -> None:
        """See `resources.messages.embedding.MessageVectorStore`."""
        model = await self._model(handle, len(vector))
        await self._pool.execute(_STORE, organization_id, [message_id], [encode(vector)], model.id)

    async def fail(self, taken: Sequence[LogClaim]) -> None:
        await self._pool.execute(
            _FAIL,
            [log.key.organization_id for log in taken],
            [log.key.log_id for log in taken],
            [log.taken for log in taken],
            [pause_after(log.failures + 1) for log in taken],
        )

    async def _model(self, handle: str, dimensions: int) -> EmbeddingModel:
        known = self._models.get((handle, dimensions))
        if known is not None:
            return known
        number = await self._pool.fetchval(_MODEL, handle, dimensions)
        if number is None:
            await self._pool.execute(_NEW_MODEL, handle, dimensions)
            number = await self._pool.fetchval(_MODEL, handle, dimensions)
        model = EmbeddingModel(number, handle, dimensions)
        self._models[handle, dimensions] = model
        return model


def pause_after(failures: int) -> float:
    """Returns seconds to wait after so many failures in a row: 1, 2, 4 ... 300."""
    return min(_LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - 1, 10))
