"""Vectors that a change of embedding model makes, finds missing, and erases."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.common import vector_indexes
from services.common.vectors import encode
from services.memory.archives.model import EmbeddingModel
from services.memory.embedding_changes.model import (
    EmbeddingChange,
    ModelCoverage,
    PassageCheck,
    Position,
    TextToEmbed,
    TextVector,
)
from services.memory.jobs.store import add_job
from services.memory.search.store.vector_indexes import INDEX_JOB, index_of

# No text that is embedded is longer; see `to_embed`.
_LONGEST_TEXT = 20_000

_NO_VECTOR = """
    SELECT true FROM memory.embedding_blanks b
    JOIN memory.passages t ON t.organization_id = $1 AND t.archive_id = $2 AND t.id = b.passage_id
    WHERE b.organization_id = $1 AND b.archive_id = $2 AND b.passage_id = w.id AND b.model_id = $3
        AND b.text_hash = md5(t.text) LIMIT 1"""
_START = Position(datetime.min.replace(tzinfo=UTC), UUID(int=0))
# Joins that can only be loops: how many passages lack a vector is what the planner cannot know.
_WALK = f"""
WITH w AS MATERIALIZED (
    SELECT p.created_at, p.id FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = $2
        AND (p.created_at, p.id) > ($4::timestamptz, $5::uuid)
    ORDER BY p.created_at, p.id LIMIT $6
)
SELECT w.created_at, w.id, coalesce(v.there, b.there) IS NULL AS lacks
FROM w LEFT JOIN LATERAL (
    SELECT true FROM memory.passage_vectors v
    WHERE v.organization_id = $1 AND v.archive_id = $2 AND v.passage_id = w.id AND v.model_id = $3 LIMIT 1
) v (there) ON true LEFT JOIN LATERAL ({_NO_VECTOR}) b (there) ON v.there IS NULL
ORDER BY w.created_at, w.id
"""
# One look at the whole archive; not by a loop, which is what the planner chooses for one that has grown since it was
# analyzed.
_LACKING = f"""
WITH w AS MATERIALIZED (
    SELECT p.id FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = $2 AND NOT EXISTS (
        SELECT FROM memory.passage_vectors v
        WHERE v.organization_id = $1 AND v.archive_id = $2 AND v.passage_id = p.id AND v.model_id = $3)
)
SELECT w.id FROM w WHERE NOT EXISTS ({_NO_VECTOR}) LIMIT $4
"""
# One by one, by the whole key: of a list of ids the planner may think that any index of the archive will do.
_TEXTS = f"""
SELECT w.id, t.start, t.hash FROM unnest($3::uuid[]) AS w (id) CROSS JOIN LATERAL (
    SELECT left(p.text, {_LONGEST_TEXT}) AS start, md5(p.text) AS hash FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = $2 AND p.id = w.id LIMIT 1) t
"""
# What is being changed or deleted now is not waited for. A change that begins now waits for this transaction, and then
# deletes the vectors of the text that was.
_WRITE = """
WITH same AS MATERIALIZED (
    SELECT w.id FROM unnest($4::uuid[], $5::text[]) AS w (id, text_hash) CROSS JOIN LATERAL (
        SELECT FROM memory.passages p
        WHERE p.organization_id = $1 AND p.archive_id = $2 AND p.id = w.id AND md5(p.text) = w.text_hash
        FOR SHARE SKIP LOCKED) t
), blank AS (
    INSERT INTO memory.embedding_blanks (organization_id, archive_id, passage_id, model_id, text_hash)
    SELECT $1, $2, w.id, $3, w.text_hash
    FROM unnest($4::uuid[], $5::text[]) AS w (id, text_hash) JOIN same USING (id)
    WHERE w.id <> ALL($6::uuid[])
    ON CONFLICT (organization_id, archive_id, passage_id, model_id) DO UPDATE SET text_hash = excluded.text_hash
)
INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
SELECT $1, $2, w.id, $3, w.embedding FROM unnest($6::uuid[], $7::halfvec[]) AS w (id, embedding) JOIN same USING (id)
ON CONFLICT DO NOTHING
"""
# One statement, so that the model in use is that of the moment in which the vectors are seen.
_ERASE = """
WITH chosen AS MATERIALIZED (
    SELECT v.passage_id, v.model_id FROM memory.passage_vectors v
    WHERE v.organization_id = $1 AND v.archive_id = $2 AND v.passage_id >= $4 AND v.model_id IS DISTINCT FROM (
        SELECT a.model_id FROM memory.archives a WHERE a.organization_id = $1 AND a.id = $2)
        AND $3 = (SELECT c.id FROM memory.embedding_changes c WHERE c.organization_id = $1 AND c.archive_id = $2
            ORDER BY c.id DESC LIMIT 1)
        AND (SELECT c.state IN (3, 4) FROM memory.embedding_changes c
            WHERE c.organization_id = $1 AND c.archive_id = $2 AND c.id = $3)
    ORDER BY v.passage_id LIMIT $5 FOR UPDATE OF v SKIP LOCKED
), gone AS (
    DELETE FROM memory.passage_vectors v USING chosen
    WHERE v.organization_id = $1 AND v.archive_id = $2 AND v.passage_id = chosen.passage_id
        AND v.model_id = chosen.model_id
)
SELECT passage_id FROM chosen ORDER BY passage_id
"""
_ERASE_BLANKS = """
DELETE FROM memory.embedding_blanks b
WHERE b.organization_id = $1 AND b.archive_id = $2 AND b.model_id IS DISTINCT FROM (
    SELECT a.model_id FROM memory.archives a WHERE a.organization_id = $1 AND a.id = $2)
"""
# Keeps a switch, or a new change, out until the statement after is done; insertions go on.
_NO_SWITCH = "SELECT FROM memory.archives WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
_OTHER_SIDES = """
SELECT a.id, a.passage_count, e.id AS model_id, e.handle, e.dimensions, (
    SELECT count(*) FROM memory.passage_vectors v
    WHERE v.organization_id = $1 AND v.archive_id = a.id AND v.model_id = e.id) AS covered
FROM memory.archives a
JOIN memory.embedding_changes c ON c.organization_id = $1 AND c.archive_id = a.id AND c.state IN (1, 2)
JOIN memory.embedding_models e ON e.id IN (c.from_model_id, c.to_model_id) AND e.id <> a.model_id
WHERE a.organization_id = $1 AND a.model_id = $3 AND (a.id = ANY($2) OR $2::uuid[] IS NULL AND a.kind = 1)
GROUP BY a.organization_id, a.id, e.id
"""

_DIMENSIONS = """
SELECT e.dimensions FROM memory.archives a CROSS JOIN memory.embedding_models e
WHERE a.organization_id = $1 AND a.id = $2 AND e.id = $3 AND a.passage_count > $4
"""


async def walk(pool: asyncpg.Pool, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[PassageCheck]:
    """See ChangeStore."""
    values = (organization_id, change.archive_id, change.after.model_id, *(change.reached or _START), limit)
    return [
        PassageCheck(Position(created_at, id_), lacks) for created_at, id_, lacks in await pool.fetch(_WALK, *values)
    ]


async def lacking(connection: Any, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[UUID]:
    """See LockedChange."""
    await connection.execute("SET LOCAL enable_nestloop = off; SET LOCAL plan_cache_mode = force_custom_plan")
    rows = await connection.fetch(_LACKING, organization_id, change.archive_id, change.after.model_id, limit)
    await connection.execute("SET LOCAL enable_nestloop = on")
    return [row[0] for row in rows]


async def texts(
    executor: Any, organization_id: UUID, archive_id: UUID, passage_ids: Sequence[UUID]
) -> list[TextToEmbed]:
    """See ChangeStore."""
    return [TextToEmbed(*row) for row in await executor.fetch(_TEXTS, organization_id, archive_id, passage_ids)]


async def write(connection: Any, organization_id: UUID, change: EmbeddingChange, vectors: Sequence[TextVector]) -> None:
    """See ChangeStore."""
    encoded = {one.passage_id: encode(one.vector) for one in vectors if one.vector is not None}
    await connection.execute(
        _WRITE,
        organization_id,
        change.archive_id,
        change.after.model_id,
        [one.passage_id for one in vectors],
        [one.text_hash for one in vectors],
        list(encoded),
        list(encoded.values()),
    )


async def erase(
    pool: asyncpg.Pool, organization_id: UUID, change: EmbeddingChange, start: UUID, limit: int
) -> UUID | None:
    """See ChangeStore."""
    where = (organization_id, change.archive_id)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(_NO_SWITCH, *where)
        await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        gone = await connection.fetch(_ERASE, *where, change.id, start, limit)
        if len(gone) == limit:
            last: UUID = gone[-1][0]
            return last
        await connection.execute(_ERASE_BLANKS, *where)
    return None


async def alternatives(
    pool: asyncpg.Pool, organization_id: UUID, archive_ids: Sequence[UUID] | None, model: EmbeddingModel
) -> list[ModelCoverage]:
    """See ChangeStore."""
    return [
        ModelCoverage(
            row["id"],
            row["passage_count"],
            EmbeddingModel(id=row["model_id"], handle=row["handle"], dimensions=row["dimensions"]),
            row["covered"],
        )
        for row in await pool.fetch(_OTHER_SIDES, organization_id, archive_ids, model.id)
    ]


async def needs_index(pool: asyncpg.Pool, organization_id: UUID, change: EmbeddingChange) -> bool:
    """See ChangeStore."""
    where = (organization_id, change.archive_id, change.after.model_id)
    dimensions = await pool.fetchval(_DIMENSIONS, *where, vector_indexes.LEAST_VECTORS)
    if dimensions is None or change.after.model_id is None:
        return False
    index = index_of(change.after.model_id, dimensions)
    state = await vector_indexes.read_state(pool, index)
    if not (index.possible and state.overdue and state.buildable):
        return False
    await add_job(pool, organization_id, INDEX_JOB, str(index.model_id))
    return True
