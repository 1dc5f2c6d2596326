"""Messages ranked by their words."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import asyncpg

from services.agent.adapters.recall.conditions import WORDS, Values, ask, counted, lexemes_of, not_repeated, within
from services.agent.recall.query import COUNTED, MessageFilter, Ranked, Scope, Term, choosing, weight
from services.common.ranking import BM25_B, BM25_K1, any_of, frequency_thresholds, quoted

# A query of more words says nothing more about what is meant.
_MOST_TERMS = 32
# Messages that each way of choosing gives at most, and of the newest so many are read for common words.
_GIVEN, _NEWEST, _LONG = 2_000, 5_000, 200
# Of words that are all common, so many are looked for together.
_TOGETHER = 4

# Words are stored as they are and, but for those that say nothing in English, as their stems, which find other forms.
_TERMS = """
SELECT word, tsvector_to_array(to_tsvector('pg_catalog.english', word)) AS stems
FROM unnest(tsvector_to_array(to_tsvector('pg_catalog.simple', $1))) AS word
"""

_BEGINNINGS = """
SELECT tsvector_to_array(to_tsvector('pg_catalog.english', $1)) AS stems,
       tsvector_to_array(to_tsvector('pg_catalog.simple', $1)) AS words
"""

_COUNTS = f"""
SELECT (SELECT count(*) FROM (
    SELECT FROM agent.messages m WHERE {{within}} AND {WORDS.format(alias="m")} @@ term.query::tsquery LIMIT {COUNTED}
) one) AS messages
FROM unnest({{queries}}::text[]) WITH ORDINALITY AS term (query, place) ORDER BY place
"""

_CHOOSE = f"""
    (SELECT m.id FROM agent.messages m
     WHERE {{where}} AND {WORDS.format(alias="m")} @@ {{query}}::text::tsquery LIMIT {_GIVEN})
"""
# Of words that stand nearly everywhere, what was said last is as good as anything.
_CHOOSE_NEWEST = f"""
    (SELECT m.id FROM (
        SELECT * FROM agent.messages WHERE organization_id = $1 AND agent_id = {{agent}}
        ORDER BY created_at DESC LIMIT {_NEWEST}
     ) m WHERE {{where}} AND m.search @@ {{query}}::text::tsquery LIMIT {_GIVEN})
"""
# The words of a long message are in pieces, which no index holds.
_CHOOSE_LONG = f"""
    (SELECT m.id FROM agent.messages m
     WHERE {{where}} AND m.search_more IS NOT NULL
        AND EXISTS (SELECT FROM unnest(m.search_more) AS piece WHERE piece @@ {{query}}::text::tsquery)
     ORDER BY m.created_at DESC LIMIT {_LONG})
"""

# BM25. How often a word stands in a message comes out of ts_rank (see ranking.frequency_thresholds); a stem and the
# form asked for count half each. How long a message is tell its different words. What is needed by every row is an
# array or a hashed set: the planner cannot know how many rows match, and joins would be nested loops.
_RANK = f"""
WITH chosen AS MATERIALIZED (
    SELECT DISTINCT id FROM ({{chosen}}) AS any_way
), piece AS MATERIALIZED (
    SELECT m.id, m.created_at, piece.words, length(piece.words) AS words_in
    FROM chosen JOIN agent.messages m ON m.organization_id = $1 AND m.id = chosen.id
    CROSS JOIN LATERAL unnest(array_append(m.search_more, m.search)) AS piece (words)
    WHERE {{unrepeated}}
), size AS MATERIALIZED (
    SELECT id, created_at, sum(words_in)::float8 AS words, avg(sum(words_in)) OVER () ::float8 AS usual
    FROM piece GROUP BY id, created_at
), term AS MATERIALIZED (
    SELECT place, query::tsquery FROM unnest({{places}}::integer[], {{queries}}::text[]) AS one (place, query)
), found AS MATERIALIZED (
    SELECT piece.id, term.place,
        sum(1 + width_bucket(ts_rank('{{{{1,1,1,1}}}}', piece.words, term.query)::float8, {{thresholds}}::float8[]))
            / 2.0 AS frequency
    FROM piece JOIN term ON piece.words @@ term.query
    GROUP BY piece.id, term.place
)
SELECT found.id, sum(
    ({{weights}}::float8[])[found.place] * found.frequency * {BM25_K1 + 1}
    / (found.frequency + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * size.words / greatest(size.usual, 1)))) AS score
FROM found JOIN size ON size.id = found.id
GROUP BY found.id, size.created_at
ORDER BY score DESC, size.created_at DESC, found.id
LIMIT {{limit}}
"""


class WordRanking:
    """The part of `ports.Rankings` that ranks by words."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._thresholds = frequency_thresholds()

    async def by_words(self, scope: Scope, text: str, wanted: MessageFilter, limit: int) -> list[Ranked]:
        """See `ports.Rankings`."""
        terms = await self._terms(scope, text)
        if not terms:
            return []
        values = Values([scope.organization_id])
        by_lexeme = [(place, lexeme) for place, term in enumerate(terms, 1) for lexeme in term.lexemes]
        statement = _RANK.format(
            chosen="UNION ALL".join(_ways(scope, terms, wanted, limit, values)),
            unrepeated=not_repeated(wanted, values),
            places=values.add([place for place, _ in by_lexeme]),
            queries=values.add([quoted(lexeme) for _, lexeme in by_lexeme]),
            thresholds=values.add(self._thresholds),
            weights=values.add([weight(term, scope.messages) for term in terms]),
            limit=values.add(limit),
        )
        return [Ranked(*row) for row in await ask(self._pool, statement, values)]

    async def beginnings(self, text: str) -> list[list[str]]:
        """See `ports.Rankings`."""
        row = await self._pool.fetchrow(_BEGINNINGS, text)
        # The stem of "happy" is "happi".
        return [[stem.removesuffix("i") for stem in row["stems"]], row["words"]]

    async def _terms(self, scope: Scope, text: str) -> list[Term]:
        """The words of a text, with the number of messages in which they stand."""
        lexemes = _by_stem(await self._pool.fetch(_TERMS, text))
        if not lexemes:
            return []
        values, of_scope = Values([scope.organization_id]), lexemes_of(scope)
        statement = _COUNTS.format(
            within=within(scope, values), queries=values.add([f"{of_scope} & {any_of(each)}" for each in lexemes])
        )
        counts = await ask(self._pool, statement, values)
        return [Term(each, row["messages"]) for each, row in zip(lexemes, counts, strict=True)]


def _by_stem(rows: Iterable[asyncpg.Record]) -> list[tuple[str, ...]]:
    """For each word its stem and its forms; words that say nothing in English only where there are no others."""
    telling: dict[str, dict[str, None]] = {}
    every: dict[str, dict[str, None]] = {}
    # The longest first: what is cut off says least.
    for row in sorted(rows, key=lambda row: (-len(row["word"]), row["word"])):
        if row["stems"]:
            # What has parts, as "well-known" has, stands for itself.
            stem = row["stems"][0] if len(row["stems"]) == 1 else row["word"]
            telling.setdefault(stem, {stem: None})[row["word"]] = None
        every[row["word"]] = {row["word"]: None}
    return [tuple(forms) for forms in (telling or every).values()][:_MOST_TERMS]


def _ways(scope: Scope, terms: Sequence[Term], wanted: MessageFilter, limit: int, values: Values) -> list[str]:
    """Statements that choose what is ranked: all messages with a rare word, and where those are few the best and the
    newest of those with common ones."""
    where = f"{within(scope, values)} AND {counted(wanted, values)}"
    of_scope = lexemes_of(scope)

    def with_words(query: str) -> str:
        return _CHOOSE.format(where=where, query=values.add(f"{of_scope} & {query}"))

    any_word = _any(terms)
    ways = [_CHOOSE_LONG.format(where=where, query=values.add(any_word))]
    chosen = choosing(terms)
    if chosen:
        ways.append(with_words(_any(chosen)))
    if sum(term.messages for term in chosen) < limit:
        common = sorted((term for term in terms if term not in chosen), key=lambda term: term.messages)[:_TOGETHER]
        together = [common, *combinations(common, 2)] if len(common) > 2 else [common]
        ways += [with_words(" & ".join(any_of(term.lexemes) for term in some)) for some in together if len(some) > 1]
        if common and scope.agent_id is not None:
            ways.append(
                _CHOOSE_NEWEST.format(where=where, agent=values.add(scope.agent_id), query=values.add(any_word))
            )
        elif common:
            ways.append(with_words(any_word))
    return ways


def _any(terms: Iterable[Term]) -> str:
    return any_of(lexeme for term in terms for lexeme in term.lexemes)
