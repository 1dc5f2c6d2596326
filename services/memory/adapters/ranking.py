"""The statements that rank passages: by their words and by their vectors."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.memory import words
from services.memory.adapters.vectors import encode
from services.memory.model import Archive, EmbeddingModel
from services.memory.passages import PassageFilter
from services.memory.search import BM25_B, BM25_K1, Ranked, frequency_thresholds, lexeme_queries, tsquery

# English stop words are left out of a query that has others: they match every passage and tell nothing.
_LEXEMES = """
SELECT tsvector_to_array(to_tsvector('pg_catalog.english', $1)) AS telling,
    tsvector_to_array(to_tsvector('memory.words', $1)) AS every
"""

# BM25. Frequencies of terms come out of ts_rank (see search.frequency_thresholds), those of documents from
# the match.
_BY_WORDS = f"""
WITH term AS (
    SELECT lexeme, query::tsquery FROM unnest($4::text[], $5::text[]) AS t (lexeme, query)
), matched AS MATERIALIZED (
    SELECT p.archive_id, p.id AS passage_id, p.words, p.word_count
    FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = ANY($2) AND p.words @@ $3::text::tsquery
), found AS MATERIALIZED (
    SELECT m.archive_id, m.passage_id, m.word_count, term.lexeme,
        1 + width_bucket(ts_rank('{{1,1,1,1}}', m.words, term.query)::float8, $6::float8[]) AS frequency
    FROM matched m JOIN term ON m.words @@ term.query
), known AS (
    SELECT lexeme, count(*) AS documents FROM found GROUP BY lexeme
)
SELECT c.archive_id, c.passage_id, sum(
    ln(1 + (greatest($7::float8 - documents, 0) + 0.5) / (documents + 0.5))
    * frequency * {BM25_K1 + 1}
    / (frequency + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * word_count / $8::float8))
) AS score
FROM found c JOIN known USING (lexeme)
WHERE true%s
GROUP BY c.archive_id, c.passage_id
ORDER BY score DESC, c.passage_id
LIMIT $9
"""

# Exact: the order is not by an expression that an index has. The model's number is a literal, so that the
# planner knows how many vectors it has.
_BY_VECTOR = """
SELECT c.archive_id, c.passage_id, 1 - (c.embedding <=> $3::halfvec) AS score
FROM memory.passage_vectors c
WHERE c.organization_id = $1 AND c.archive_id = ANY($2) AND c.model_id = %d%s
ORDER BY c.embedding <=> $3::halfvec, c.passage_id
LIMIT $4
"""

_WITH_TAGS = """
    AND (c.archive_id, c.passage_id) IN (
        SELECT t.archive_id, t.passage_id FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = ANY($2) AND t.tag = ANY(${tags}::text[])
        GROUP BY t.archive_id, t.passage_id HAVING count(*) >= ${least})"""
_WITH_DATES = """
    AND (c.archive_id, c.passage_id) IN (
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
        condition, values = _condition(wanted, first=10)
        found = await self._pool.fetch(
            _BY_WORDS % condition,
            organization_id,
            archive_ids,
            tsquery(archive_ids, lexemes),
            lexemes,
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
        condition, values = _condition(wanted, first=5)
        statement = _BY_VECTOR % (model.id, condition)
        found = await self._pool.fetch(statement, organization_id, archive_ids, encode(vector), limit, *values)
        return [Ranked(*row) for row in found]

    async def _lexemes(self, query: str) -> list[str]:
        row = await self._pool.fetchrow(_LEXEMES, " ".join(words.to_find(query)))
        return list(row["telling"] or row["every"])


def _condition(wanted: PassageFilter, *, first: int) -> tuple[str, list[object]]:
    """SQL for a filter on candidates `c`, and its values, numbered from `first`."""
    values: list[object] = []

    def number(value: object) -> int:
        values.append(value)
        return first + len(values) - 1

    condition = ""
    if wanted.tags:
        least = len(wanted.tags) if wanted.match_all_tags else 1
        condition += _WITH_TAGS.format(tags=number(wanted.tags), least=number(least))
    bounds = ""
    if wanted.start is not None:
        bounds += f" AND d.created_at >= ${number(wanted.start)}"
    if wanted.end is not None:
        bounds += f" AND d.created_at <= ${number(wanted.end)}"
    if bounds:
        condition += _WITH_DATES.format(bounds=bounds)
    return condition, values
