"""Tools ranked by words and by vectors, and their vectors. A tenant has few enough of them to look at each."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.common.core.ranking import BM25_B, BM25_K1
from services.tool_runner.core.model import Tool
from services.tool_runner.tools import rows
from services.tool_runner.tools.rows import TOOL_COLUMNS
from services.tool_runner.tools.search.model import ToolQuery, compact, words_of
from services.tool_runner.tools.search.ports import ToolVector

# $1 organization, $2 types, $3 tags
_FILTER = """
    t.organization_id = $1 AND ($2::text[] = '{}' OR t.tool_type = ANY($2)) AND ($3::text[] = '{}' OR t.tags && $3)
"""

# BM25 over three fields: a word in the name counts as three in the description, one in a tag as two. What only begins
# as a word of the query counts a little. Names that have the query in them come first, the more of them it is the
# earlier. $4 words, $5 the query as a part of a name, $6 the query, $7 most
_BY_WORDS = f"""
WITH mine AS MATERIALIZED (
    SELECT t.id, t.name, t.description, t.created_at,
        CASE WHEN t.tags = '{{}}' THEN t.words ELSE t.words || setweight(
            to_tsvector('pg_catalog.english', translate(array_to_string(t.tags, ' '), '_-:', '   ')), 'C') END AS words
    FROM tool_runner.tools t WHERE {_FILTER}
), usual AS MATERIALIZED (
    SELECT count(*)::float8 AS tools, greatest(avg(length(words)), 1)::float8 AS size FROM mine
), term AS MATERIALIZED (
    SELECT lexeme, quoted::tsquery AS anywhere,
        (quoted || ':A')::tsquery AS in_name, (quoted || ':C')::tsquery AS in_tag,
        CASE WHEN length(lexeme) < 4 THEN quoted ELSE quoted || ':*' END::tsquery AS begun
    FROM (
        SELECT DISTINCT lexeme, '''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''' AS quoted
        FROM unnest($4::text[]) AS word, unnest(tsvector_to_array(to_tsvector('pg_catalog.english', word))) AS lexeme
    ) AS one
), hit AS MATERIALIZED (
    SELECT mine.id, term.lexeme, length(mine.words) AS size, CASE WHEN mine.words @@ term.anywhere THEN
        1.0 + 2 * (mine.words @@ term.in_name)::integer + (mine.words @@ term.in_tag)::integer ELSE 0.3 END AS frequency
    FROM mine JOIN term ON mine.words @@ term.begun
), weighed AS (
    SELECT hit.*, ln(1 + (usual.tools - count(*) OVER lexemes + 0.5) / (count(*) OVER lexemes + 0.5)) AS weight,
        {BM25_K1} * ({1 - BM25_B} + {BM25_B} * hit.size / usual.size) AS length
    FROM hit, usual WINDOW lexemes AS (PARTITION BY hit.lexeme)
), scored AS (
    SELECT id, sum(weight * frequency * {BM25_K1 + 1} / (frequency + length)) AS score FROM weighed GROUP BY id
), named AS (
    SELECT id, $5::text <> '' AND position($5 IN plain) > 0 AS is_part, length(plain) AS length
    FROM mine, LATERAL (SELECT regexp_replace(lower(name), '[^a-z0-9]', '', 'g') AS plain) AS one
)
SELECT id FROM mine JOIN named USING (id) LEFT JOIN scored USING (id)
WHERE scored.id IS NOT NULL OR named.is_part OR position(lower($6) IN lower(mine.description)) > 0
ORDER BY is_part DESC, CASE WHEN is_part THEN named.length END, score DESC NULLS LAST, created_at DESC, id
LIMIT $7
"""

# A model that came to make longer vectors is asked in a new length; the old vectors do not count. The text is read
# once, not for each row. $4 model, $5 vector, $6 its length, $7 most
_BY_VECTOR = f"""
SELECT v.tool_id FROM tool_runner.tool_vectors v
JOIN tool_runner.tools t ON t.organization_id = v.organization_id AND t.id = v.tool_id
WHERE {_FILTER} AND v.organization_id = $1 AND v.model = $4
ORDER BY CASE WHEN vector_dims(v.vector) = $6 THEN v.vector <=> (SELECT $5::text::halfvec) END NULLS LAST, v.tool_id
LIMIT $7
"""

_NEWEST = f"SELECT t.id FROM tool_runner.tools t WHERE {_FILTER} ORDER BY t.created_at DESC, t.id DESC LIMIT $4"

_TOOLS = f"""
SELECT {TOOL_COLUMNS} FROM tool_runner.tools WHERE organization_id = $1 AND id = ANY($2::uuid[])
"""

_MISSING = f"""
SELECT {TOOL_COLUMNS} FROM tool_runner.tools t
WHERE organization_id = $1 AND NOT EXISTS (
    SELECT FROM tool_runner.tool_vectors v
    WHERE v.organization_id = $1 AND v.tool_id = t.id AND v.model = $2 AND v.version = t.version)
ORDER BY updated_at DESC, id
LIMIT $3
"""

_STORE = """
INSERT INTO tool_runner.tool_vectors (organization_id, tool_id, model, version, vector)
SELECT $1, one.tool_id, $2, one.version, one.vector::halfvec
FROM unnest($3::uuid[], $4::bigint[], $5::text[]) AS one (tool_id, version, vector)
JOIN tool_runner.tools t ON t.organization_id = $1 AND t.id = one.tool_id
ORDER BY one.tool_id
FOR KEY SHARE OF t
ON CONFLICT (organization_id, tool_id, model) DO UPDATE SET version = excluded.version, vector = excluded.vector
WHERE tool_vectors.version <= excluded.version
"""


class PostgresToolSearch:
    """`search.ports.Rankings` and `search.ports.Vectors`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def by_words(self, organization_id: UUID, query: ToolQuery) -> list[UUID]:
        part = compact(query.text)
        records = await self._pool.fetch(
            _BY_WORDS,
            *_filter_values(organization_id, query),
            words_of(query.text),
            part if len(part) > 2 else "",
            query.text,
            query.depth,
        )
        return [row["id"] for row in records]

    async def by_vector(
        self, organization_id: UUID, model: str, vector: Sequence[float], query: ToolQuery
    ) -> list[UUID]:
        text, length = _text(vector), len(vector)
        values = (*_filter_values(organization_id, query), model, text, length, query.depth)
        return [row["tool_id"] for row in await self._pool.fetch(_BY_VECTOR, *values)]

    async def newest(self, organization_id: UUID, query: ToolQuery) -> list[UUID]:
        records = await self._pool.fetch(_NEWEST, *_filter_values(organization_id, query), query.limit)
        return [row["id"] for row in records]

    async def tools(self, organization_id: UUID, ids: Sequence[UUID]) -> list[Tool]:
        records = {row["id"]: rows.tool(row) for row in await self._pool.fetch(_TOOLS, organization_id, ids)}
        return [records[tool_id] for tool_id in ids if tool_id in records]

    async def missing(self, organization_id: UUID, model: str, most: int) -> list[Tool]:
        return [rows.tool(row) for row in await self._pool.fetch(_MISSING, organization_id, model, most)]

    async def store(self, organization_id: UUID, model: str, vectors: Sequence[ToolVector]) -> None:
        await self._pool.execute(
            _STORE,
            organization_id,
            model,
            [one.tool_id for one in vectors],
            [one.version for one in vectors],
            [_text(one.values) for one in vectors],
        )


def _filter_values(organization_id: UUID, query: ToolQuery) -> tuple[UUID, Sequence[str], Sequence[str]]:
    return organization_id, [kind.value for kind in query.types], query.tags


def _text(vector: Sequence[float]) -> str:
    """Returns it as Postgres reads it. Digits beyond these are lost in 16 bits anyway."""
    return "[" + ",".join(f"{value:.5g}" for value in vector) + "]"
