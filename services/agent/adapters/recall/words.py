"""Messages ranked by their words; services/common/core/candidates.py says which of them are looked at."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import asyncpg

from services.agent.adapters.recall.conditions import (
    WORDS,
    Parameters,
    fetch_rows,
    filter_condition,
    lexemes_of,
    repeat_exclusion,
    scope_condition,
    time_condition,
)
from services.agent.adapters.recall.samples import sample
from services.agent.core.recall.query import MessageFilter, RankedMessage, Scope
from services.agent.core.recall.texts import query_text
from services.common.core.candidates import Candidates, choose_candidates, weight, widen_candidates
from services.common.core.ranking import BM25_B, BM25_K1, any_of, frequency_thresholds, quote_lexeme

# A query of more words says nothing more about what is meant.
_MOST_TERMS = 24
# Of so many messages all that have a word are ranked; of more, at most so many; and of these that each way gives.
_MOST_EXACT = 3_000
_CHOSEN = 1_500
# So many of the newest are read where nearly all would do, and so many long ones.
_NEWEST, _LONG = 3_000, 100

# Its stem, and the forms that it was asked for in.
Forms = tuple[str, ...]

# Words are stored as they are and, but for those that say nothing in English, as their stems, which find other forms.
_TERMS = """
SELECT word, tsvector_to_array(to_tsvector('pg_catalog.english', word)) AS stems
FROM unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', $1))) AS word
"""

_BEGINNINGS = """
SELECT tsvector_to_array(to_tsvector('pg_catalog.english', $1)) AS stems,
       tsvector_to_array(to_tsvector('pg_catalog.simple', $1)) AS words
"""

_COLUMNS = """m.id, m.created_at, m.search, m.search_more, (length(m.search)
        + coalesce((SELECT sum(length(piece)) FROM unnest(m.search_more) AS piece), 0))::float8"""
_CHOOSE = f"""
    (SELECT {_COLUMNS} FROM agent.messages m
     WHERE {{where}} AND {WORDS.format(alias="m")} @@ {{query}}::text::tsquery LIMIT {{most}})
"""
# Of words that stand nearly everywhere, what was said last is as good as anything.
_CHOOSE_NEWEST = f"""
    (SELECT {_COLUMNS} FROM (
        SELECT * FROM agent.messages m WHERE organization_id = $1 AND agent_id = {{agent}} AND {{made}}
        ORDER BY created_at DESC LIMIT {_NEWEST}
     ) m WHERE {{where}} AND m.search @@ {{query}}::text::tsquery LIMIT {{most}})
"""
# The words of a long message are in pieces, which no index holds.
_CHOOSE_LONG = f"""
    (SELECT {_COLUMNS} FROM agent.messages m
     WHERE {{where}} AND m.search_more IS NOT NULL
        AND EXISTS (SELECT FROM unnest(m.search_more) AS piece WHERE piece @@ {{query}}::text::tsquery)
     ORDER BY m.created_at DESC LIMIT {_LONG})
"""

# BM25. How often a word stands in a message comes out of ts_rank (see ranking.frequency_thresholds); a stem and the
# form asked for count half each. How long a message is tell its different words. A word whose weight is null is
# weighed by the messages that are ranked, which are all that have it. Nothing is joined that a row could carry along:
# the planner cannot know how many rows match, and joins would be nested loops.
_RANK = f"""
WITH chosen AS MATERIALIZED (
    SELECT DISTINCT ON (id) * FROM ({{chosen}}) AS any_way (id, created_at, search, search_more, words) ORDER BY id
), mean AS MATERIALIZED (
    SELECT greatest(avg(words), 1)::float8 AS usual FROM chosen
), piece AS MATERIALIZED (
    SELECT id, created_at, words, search FROM chosen
    UNION ALL SELECT id, created_at, words, piece FROM chosen, unnest(search_more) AS piece
), term AS MATERIALIZED (
    SELECT place, query::tsquery FROM unnest({{places}}::integer[], {{queries}}::text[]) AS one (place, query)
), found AS MATERIALIZED (
    SELECT piece.id, piece.created_at, term.place,
        {BM25_K1} * ({1 - BM25_B} + {BM25_B} * piece.words / (SELECT usual FROM mean)) AS length,
        sum(1 + width_bucket(ts_rank('{{{{1,1,1,1}}}}', piece.search, term.query)::float8, {{thresholds}}::float8[]))
            / 2.0 AS frequency
    FROM piece JOIN term ON piece.search @@ term.query
    GROUP BY piece.id, piece.created_at, piece.words, term.place
), weight AS MATERIALIZED (
    SELECT array_agg(coalesce(given.weight, ln(
        1 + (greatest({{total}}::float8 - coalesce(known.messages, 0), 0) + 0.5) / (coalesce(known.messages, 0) + 0.5))
    ) ORDER BY given.place) AS of_term
    FROM unnest({{weights}}::float8[]) WITH ORDINALITY AS given (weight, place)
    LEFT JOIN (SELECT place, count(*)::float8 AS messages FROM found GROUP BY place) AS known USING (place)
)
SELECT id, sum(
    (SELECT of_term FROM weight)[place] * frequency * {BM25_K1 + 1} / (frequency + length)) AS score,
    (SELECT sum(one) FROM weight, unnest(of_term) AS one) AS whole
FROM found
GROUP BY id, created_at
ORDER BY score DESC, created_at DESC, id
LIMIT {{limit}}
"""


class WordRanking:
    """The part of `ports.Rankings` that ranks by words."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._thresholds = frequency_thresholds()

    async def beginnings(self, text: str) -> list[list[str]]:
        """See `ports.Rankings`."""
        row = await self._pool.fetchrow(_BEGINNINGS, text)
        # The stem of "happy" is "happi".
        return [[stem.removesuffix("i") for stem in row["stems"]], row["words"]]

    async def by_words(self, scope: Scope, text: str, filters: MessageFilter, limit: int) -> list[RankedMessage]:
        """See `ports.Rankings`."""
        terms = _by_stem(await self._pool.fetch(_TERMS, query_text(text)))
        if not terms:
            return []
        if scope.messages <= _MOST_EXACT:
            every = Candidates(tuple((stem,) for stem in terms), ())
            return await self._among(every, terms, {}, scope, filters, limit)
        shares = await sample(self._pool, scope, terms)
        # A filter takes some of what is chosen away.
        first = choose_candidates(shares, scope.messages, limit=limit, most=_CHOSEN)
        hits = await self._among(first, terms, shares, scope, filters, limit)
        if len(hits) >= limit // 2 or first.whole == terms.keys():
            return hits
        # The newest did not do: they may be of other roles.
        more = replace(widen_candidates(shares, scope.messages, most=_CHOSEN), newest=False)
        return await self._among(more, terms, shares, scope, filters, limit)

    async def _among(
        self,
        some: Candidates,
        terms: Mapping[str, Forms],
        shares: Mapping[str, float],
        scope: Scope,
        filters: MessageFilter,
        limit: int,
    ) -> list[RankedMessage]:
        values = Parameters([scope.organization_id])
        by_lexeme = [(place, lexeme) for place, forms in enumerate(terms.values(), 1) for lexeme in forms]
        weights = [None if stem in some.whole else weight(shares[stem], scope.messages) for stem in terms]
        statement = _RANK.format(
            chosen="UNION ALL".join(_rankings(scope, some, terms, filters, values)),
            places=values.add([place for place, _ in by_lexeme]),
            queries=values.add([quote_lexeme(lexeme) for _, lexeme in by_lexeme]),
            thresholds=values.add(self._thresholds),
            total=values.add(scope.messages),
            weights=values.add(weights),
            limit=values.add(limit),
        )
        return [RankedMessage(*row) for row in await fetch_rows(self._pool, statement, values)]


def _by_stem(rows: Iterable[asyncpg.Record]) -> dict[str, Forms]:
    """Returns for each word its stem and its forms; English stop words only where there are no others."""
    telling: dict[str, dict[str, None]] = {}
    every: dict[str, dict[str, None]] = {}
    # The longest first: what is cut off says least.
    for row in sorted(rows, key=lambda row: (-len(row["word"]), row["word"])):
        if row["stems"]:
            # What has parts, as "well-known" has, stands for itself.
            stem = row["stems"][0] if len(row["stems"]) == 1 else row["word"]
            telling.setdefault(stem, {stem: None})[row["word"]] = None
        every[row["word"]] = {row["word"]: None}
    return {stem: tuple(forms) for stem, forms in list((telling or every).items())[:_MOST_TERMS]}


def _rankings(
    scope: Scope, some: Candidates, terms: Mapping[str, Forms], filters: MessageFilter, values: Parameters
) -> list[str]:
    """Returns statements that choose what is ranked."""
    conditions = scope_condition(scope, values), filter_condition(filters, values), repeat_exclusion(filters, values)
    where = " AND ".join(conditions)
    most = _MOST_EXACT if scope.messages <= _MOST_EXACT else 2 * _CHOSEN

    def way(statement: str, query: str, **more: str) -> str:
        return statement.format(where=where, query=values.add(query), most=most, **more)

    ways = [way(_CHOOSE_LONG, any_of(lexeme for forms in terms.values() for lexeme in forms))]
    if some.sure:
        ways.append(way(_CHOOSE, f"{lexemes_of(scope)} & {_any_of_all(some.sure, terms)}"))
    if some.unsure and some.newest and scope.agent_id is not None:
        agent = values.add(scope.agent_id)
        ways.append(
            way(_CHOOSE_NEWEST, _any_of_all(some.unsure, terms), agent=agent, made=time_condition(filters, values))
        )
    elif some.unsure:
        ways.append(way(_CHOOSE, f"{lexemes_of(scope)} & {_any_of_all(some.unsure, terms)}"))
    return ways


def _any_of_all(conjunctions: Sequence[Sequence[str]], terms: Mapping[str, Forms]) -> str:
    """Returns a condition in tsquery's notation: all words of one of these, in any form."""
    return "(" + " | ".join(" & ".join(any_of(terms[stem]) for stem in some) for some in conjunctions) + ")"
