"""The statements that rank passages: by their words and by their vectors."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.memory.adapters.archival.vectors import encode
from services.memory.archival import words
from services.memory.archival.passages import PassageFilter
from services.memory.archival.search import BM25_B, BM25_K1, Ranked, frequency_thresholds, lexeme_queries, tsquery
from services.memory.model import Archive, EmbeddingModel

# English stop words are left out of a query that has others: they match every passage and tell nothing.
_LEXEMES = """
SELECT tsvector_to_array(to_tsvector('pg_catalog.english', $1)) AS telling,
    tsvector_to_array(to_tsvector('memory.words', $1)) AS every
"""

# BM25. How often a word stands in a passage comes out of ts_rank (see search.frequency_thresholds), in how many
# passages out of the match. What is needed by every row is an array or a hashed set: the planner cannot know how
# many rows match, and joins would be nested loops.
_BY_WORDS = f"""
WITH term AS MATERIALIZED (
    SELECT place, query::tsquery FROM unnest($4::text[]) WITH ORDINALITY AS t (query, place)
), matched AS MATERIALIZED (
    SELECT c.archive_id, c.id AS passage_id, c.words, c.word_count::float8, {{wanted}} AS wanted
    FROM memory.passages c
    WHERE c.organization_id = $1 AND c.archive_id = ANY($2) AND c.words @@ $3::text::tsquery
), found AS MATERIALIZED (
    SELECT m.archive_id, m.passage_id, m.wanted, term.place,
        1 + width_bucket(ts_rank('{{{{1,1,1,1}}}}', m.words, term.query)::float8, $5::float8[]) AS frequency,
        {BM25_K1} * ({1 - BM25_B} + {BM25_B} * m.word_count / $7::float8) AS length
    FROM matched m JOIN term ON m.words @@ term.query
), known AS MATERIALIZED (
    SELECT place, count(*)::float8 AS passages FROM found GROUP BY place
), weight AS MATERIALIZED (
    SELECT array_agg(ln(1 + (greatest($6::float8 - passages, 0) + 0.5) / (passages + 0.5)) ORDER BY place) AS of_term
    FROM term LEFT JOIN known USING (place)
)
SELECT f.archive_id, f.passage_id,
    sum((SELECT of_term FROM weight)[f.place] * f.frequency * {BM25_K1 + 1} / (f.frequency + f.length)) AS score
FROM found f
WHERE f.wanted
GROUP BY f.archive_id, f.passage_id
ORDER BY score DESC, f.passage_id
LIMIT $8
"""

# Exact: the order is not by an expression that an index has. The model's number is a literal, so that the
# planner knows how many vectors it has.
_BY_VECTOR = """
SELECT c.archive_id, c.passage_id, 1 - (c.embedding <=> $3::halfvec) AS score
FROM memory.passage_vectors c
WHERE c.organization_id = $1 AND c.archive_id = ANY($2) AND c.model_id = {model} AND {wanted}
ORDER BY c.embedding <=> $3::halfvec, c.passage_id
LIMIT $4
"""

_WITH_TAGS = """(c.archive_id, c.{key}) IN (
        SELECT t.archive_id, t.passage_id FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = ANY($2) AND t.tag = ANY(${tags}::text[])
        GROUP BY t.archive_id, t.passage_id HAVING count(*) >= ${least})"""
_WITH_DATES = """(c.archive_id, c.{key}) IN (
        SELECT d.archive_id, d.id FROM memory.passages d
        WHERE d.organization_id = $1 AND d.archive_id = ANY($2){bounds})"""


class Ranking:
    """The ranking half of `ports.PassageStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._thresholds = frequency_thresholds()

    async def rank_by_words(
        self,
        organization_id: UUID,
        archives: Sequence[Archive],
        query: str,
        wanted: PassageFilter,
        limit: int,
    ) -> list[Ranked]:
        passages = sum(archive.passage_count for archive in archives)
        lexemes = await self._lexemes(query) if passages else []
        if not lexemes:
            return []
        average = max(1.0, sum(archive.word_count for archive in archives) / passages)
        archive_ids = [archive.id for archive in archives]
        condition, values = _condition(wanted, key="id", first=9)
        found = await self._ask(
            _BY_WORDS.format(wanted=condition),
            organization_id,
            archive_ids,
            tsquery(archive_ids, lexemes),
            lexeme_queries(lexemes),
            self._thresholds,
            passages,
            average,
            limit,
            *values,
        )
        return [Ranked(*row) for row in found]

    async def rank_by_vector(
        self,
        organization_id: UUID,
        archive_ids: Sequence[UUID],
        model: EmbeddingModel,
        vector: Sequence[float],
        wanted: PassageFilter,
        limit: int,
    ) -> list[Ranked]:
        condition, values = _condition(wanted, key="passage_id", first=5)
        statement = _BY_VECTOR.format(model=model.id, wanted=condition)
        found = await self._ask(statement, organization_id, archive_ids, encode(vector), limit, *values)
        return [Ranked(*row) for row in found]

    async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
        """Plans for these values: a plan for any tenant would be wrong for one that holds most of the rows."""
        async with self._pool.acquire() as connection, connection.transaction(readonly=True):
            await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            found: Sequence[Any] = await connection.fetch(statement, *values)
            return found

    async def _lexemes(self, query: str) -> list[str]:
        row = await self._pool.fetchrow(_LEXEMES, " ".join(words.to_find(query)))
        return list(row["telling"] or row["every"])


def _condition(wanted: PassageFilter, *, key: str, first: int) -> tuple[str, list[object]]:
    """SQL for a filter on rows `c` whose column `key` is a passage's id, and its values, numbered from `first`."""
    values: list[object] = []

    def number(value: object) -> int:
        values.append(value)
        return first + len(values) - 1

    conditions = []
    if wanted.tags:
        least = len(wanted.tags) if wanted.match_all_tags else 1
        conditions.append(_WITH_TAGS.format(key=key, tags=number(wanted.tags), least=number(least)))
    bounds = ""
    if wanted.start is not None:
        bounds += f" AND d.created_at >= ${number(wanted.start)}"
    if wanted.end is not None:
        bounds += f" AND d.created_at <= ${number(wanted.end)}"
    if bounds:
        conditions.append(_WITH_DATES.format(key=key, bounds=bounds))
    return " AND ".join(conditions) or "true", values
