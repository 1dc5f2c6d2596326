"""Passages ranked by their words; services/common/core/candidates.py says which of them are looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core import words
from services.common.core.candidates import Candidates, choose_candidates, rarest_words, weight, widen_candidates
from services.common.core.languages import language_of
from services.common.core.ranking import all_of, any_of, frequency_thresholds, quote_lexeme
from services.memory.core.ranking.search import RankedPassage, Scope, scope_lexemes, tsquery
from services.memory.core.ranking.word_choice import (
    MOST_EXACT,
    MOST_NEWEST,
    MOST_WORDS,
    count_before_filter,
    count_limit,
    most_candidates,
    most_selected,
)
from services.memory.passages.model import PassageFilter
from services.memory.search.store.filters import Selection, select_by_filter
from services.memory.search.store.word_samples import SampleRequests, frequencies
from services.memory.search.store.word_statements import (
    SETTINGS,
    matching,
    matching_of_newest,
    matching_of_selection,
    rank_statement,
)
from services.memory.sql.reading import reading
from services.memory.sql.statements import Values

# Below the first: not at all.
_THRESHOLDS = [0.3, *frequency_thresholds()]

# Stop words of the query's language are left out of a query that has others: they match every passage and tell nothing.
# In another language than English a word counts with its stem there, and as it is stemmed where nobody knew of that.
_LEXEMES = """
SELECT CASE WHEN cardinality(telling) > 0 THEN telling ELSE every END
FROM (
    SELECT tsvector_to_array(to_tsvector('memory.words', $1)) AS every, ARRAY(
        SELECT DISTINCT unnest(own || CASE WHEN $2 = 'english' THEN '{}' ELSE tsvector_to_array(
            to_tsvector('memory.words', word)) END)
        FROM unnest(string_to_array($1, ' ')) AS word
        CROSS JOIN LATERAL (
            SELECT tsvector_to_array(to_tsvector(('pg_catalog.' || $2)::regconfig, word)) AS own OFFSET 0) AS stems
        WHERE cardinality(own) > 0
    ) AS telling
) AS words
"""


class WordRanking:
    """The half of `Rankings` that ranks by words."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sample_requests = SampleRequests(pool)

    async def by_words(
        self, organization_id: UUID, scope: Scope, query: str, filters: PassageFilter, limit: int
    ) -> list[RankedPassage]:
        """See `Rankings`."""
        part = scope.whole
        if not part.passages:
            return []
        old: Sequence[UUID] = ()
        async with reading(self._pool, SETTINGS) as connection:
            language = language_of(query) or "english"
            lexemes = await connection.fetchval(_LEXEMES, " ".join(words.query_words(query)), language)
            if not lexemes:
                return []
            search = WordSearch(connection, organization_id, scope, filters, limit)
            if part.passages <= MOST_EXACT:
                rows = await search.among_all(lexemes)
            else:
                shares = await frequencies(connection, organization_id, part, lexemes)
                rows, old = await search.among_some(shares.shares), shares.old
        if old:
            await self._sample_requests.ask(organization_id, old)
        return [RankedPassage(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class WordSearch:
    """One question, within a transaction."""

    connection: Any
    organization_id: UUID
    scope: Scope
    filters: PassageFilter
    limit: int

    async def among_all(self, lexemes: Sequence[str]) -> Sequence[Any]:
        """Ranks all passages that have a word. How many have which comes out of that."""
        values = self._values(dict.fromkeys(lexemes))
        return await self._rank([matching(self._within(any_of(lexemes)), None, values)], len(lexemes), values)

    async def among_some(self, shares: Mapping[str, float]) -> Sequence[Any]:
        """Ranks those that may be the best; when these are few, more; when the filter leaves few, those."""
        shares = {word: shares[word] for word in rarest_words(shares, MOST_WORDS)}
        part = self.scope.whole
        countable = count_limit(part.passages)
        selection = await select_by_filter(self.connection, self.organization_id, part, self.filters, countable)
        if selection is not None and selection.passages <= most_selected(part.passages):
            return await self._among_selection(selection, shares)
        most = most_candidates(self.limit, filtered=selection is not None)
        selected = None if selection is None else selection.passages
        enough = count_before_filter(self.limit, part.passages, selected)
        first = choose_candidates(shares, part.passages, limit=enough, most=most)
        rows = await self._among(first, shares, most)
        if len(rows) >= self.limit // 2 or first.whole == shares.keys():
            return rows
        if selection is not None and selection.passages < countable:
            return await self._among_selection(selection, shares)
        return await self._among(widen_candidates(shares, part.passages, most=most), shares, most)

    async def _among(self, some: Candidates, shares: Mapping[str, float], most: int) -> Sequence[Any]:
        values = self._values({word: None if word in some.whole else self._weight(shares[word]) for word in shares})
        sources = []
        sure = any_of_all(some.sure)
        if some.sure:
            sources.append(matching(self._within(sure), most, values))
        if some.unsure:
            query = any_of_all(some.unsure) + (f" & !{sure}" if some.sure else "")
            if some.newest:
                sources.append(matching_of_newest(query, MOST_NEWEST, self.scope.whole, values))
            else:
                sources.append(matching(self._within(query), most, values))
        return await self._rank(sources, len(shares), values)

    async def _among_selection(self, selection: Selection, shares: Mapping[str, float]) -> Sequence[Any]:
        values = self._values({word: self._weight(share) for word, share in shares.items()})
        keys = selection.sql(self.filters, self.scope.whole, values)
        return await self._rank([matching_of_selection(any_of(shares), keys, values)], len(shares), values)

    async def _rank(self, sources: list[str], terms: int, values: Values) -> Sequence[Any]:
        statement = rank_statement(sources, terms, self.scope.whole, self.filters, values)
        rows: Sequence[Any] = await self.connection.fetch(statement, *values.all)
        return rows

    def _values(self, weights: Mapping[str, float | None]) -> Values:
        part = self.scope.whole
        return Values(
            self.organization_id,
            part.archive_ids,
            _THRESHOLDS,
            part.passages,
            max(1.0, self.scope.words / part.passages),
            list(weights.values()),
            [quote_lexeme(lexeme) for lexeme in weights],
            self.limit,
        )

    def _weight(self, share: float) -> float:
        return weight(share, self.scope.whole.passages)

    def _within(self, query: str) -> str:
        return tsquery(scope_lexemes(self.organization_id, self.scope.whole.archive_ids), query)


def any_of_all(conjunctions: Sequence[Sequence[str]]) -> str:
    """Returns, in tsquery's notation, that a passage has all lexemes of one of these."""
    return "(" + " | ".join(all_of(lexemes) for lexemes in conjunctions) + ")"
