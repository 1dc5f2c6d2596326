"""Passages ranked by their words."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.common import words
from services.common.ranking import BM25_B, BM25_K1, frequency_thresholds, quoted
from services.memory.adapters.archival.filters import ask, condition, within
from services.memory.archival.passages import PassageFilter
from services.memory.archival.search import Ranked, Scope, scope_lexemes, tsquery

# English stop words are left out of a query that has others: they match every passage and tell nothing.
_LEXEMES = """
SELECT tsvector_to_array(to_tsvector('pg_catalog.english', $1)) AS telling,
    tsvector_to_array(to_tsvector('memory.words', $1)) AS every
"""

# BM25. How often a word stands in a passage comes out of ts_rank (see ranking.frequency_thresholds), in how many
# passages out of the match. What is needed by every row is an array or a hashed set: the planner cannot know how
# many rows match, and joins would be nested loops.
_BY_WORDS = f"""
WITH term AS MATERIALIZED (
    SELECT place, query::tsquery FROM unnest($4::text[]) WITH ORDINALITY AS t (query, place)
), matched AS MATERIALIZED (
    SELECT c.archive_id, c.id AS passage_id, c.words, c.word_count::float8, {{wanted}} AS wanted
    FROM memory.passages c
    WHERE c.organization_id = $1 AND {{within}} AND c.words @@ $3::text::tsquery
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


class WordRanking:
    """The half of `ports.Rankings` that ranks by words."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._thresholds = frequency_thresholds()

    async def by_words(
        self, organization_id: UUID, scope: Scope, query: str, wanted: PassageFilter, limit: int
    ) -> list[Ranked]:
        """See `ports.Rankings`."""
        part = scope.whole
        lexemes = await self._lexemes(query) if part.passages else []
        if not lexemes:
            return []
        filtered, values = condition(wanted, part, key="id", first=9)
        found = await ask(
            self._pool,
            _BY_WORDS.format(wanted=filtered, within=within(part)),
            organization_id,
            part.archive_ids,
            tsquery(scope_lexemes(organization_id, part.archive_ids), lexemes),
            [quoted(lexeme) for lexeme in lexemes],
            self._thresholds,
            part.passages,
            max(1.0, scope.words / part.passages),
            limit,
            *values,
        )
        return [Ranked(*row) for row in found]

    async def _lexemes(self, query: str) -> Sequence[str]:
        row = await self._pool.fetchrow(_LEXEMES, " ".join(words.to_find(query)))
        return list(row["telling"] or row["every"])
