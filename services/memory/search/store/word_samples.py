"""Samples of words on Postgres: taken by a job, asked by searches."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.ranking import quote_lexeme
from services.memory.core.ranking.search import Part
from services.memory.core.ranking.word_samples import (
    FEWEST_PASSAGES,
    SAMPLED,
    WORD_SAMPLE,
    Sample,
    fewest,
    is_old,
    unknown_share,
)
from services.memory.jobs.store import add_job
from services.memory.search.store.filters import newest

# Passages that stand for all, as long as there is no sample.
_AT_FIRST = 1_000
# A job that was asked for just now need not be asked for again.
_PAUSE_SECONDS = 60.0
_MOST_ASKED = 10_000

# The shares of words in each, which are none where there is no sample.
_SAMPLES = """
SELECT t.scope_id, t.passage_count, s.passages, s.sampled, ARRAY(
    SELECT c.lexeme FROM memory.word_counts c
    WHERE c.organization_id = $1 AND c.scope_id = s.scope_id AND c.lexeme = ANY($3::text[]) ORDER BY c.lexeme
) AS lexemes, ARRAY(
    SELECT c.share FROM memory.word_counts c
    WHERE c.organization_id = $1 AND c.scope_id = s.scope_id AND c.lexeme = ANY($3::text[]) ORDER BY c.lexeme
) AS shares
FROM {scopes} LEFT JOIN memory.word_samples s ON s.organization_id = $1 AND s.scope_id = t.scope_id
"""
_SAMPLES_OF_ARCHIVES = _SAMPLES.format(
    scopes=f"""(
    SELECT a.id AS scope_id, a.passage_count FROM memory.archives a
    WHERE a.organization_id = $1 AND a.id = ANY($2) AND a.passage_count > {FEWEST_PASSAGES}) AS t"""
)
_SAMPLE_OF_TENANT = _SAMPLES.format(scopes="(SELECT unnest($2::uuid[]) AS scope_id, $4::bigint AS passage_count) AS t")
_SHARES_AT_FIRST = """
WITH recent AS MATERIALIZED ({newest})
SELECT term.lexeme, count(*)::float8 / (SELECT count(*) FROM recent) AS share
FROM unnest($4::text[], $5::text[]) AS term (lexeme, query) JOIN recent ON recent.words @@ term.query::tsquery
GROUP BY term.lexeme
"""

_OF_SCOPE = """a.organization_id = $1 AND (
        a.id = $2 AND a.kind < 3 OR $2 = $1 AND a.kind = 1)"""
_PASSAGES = f"SELECT coalesce(sum(a.passage_count), 0)::bigint FROM memory.archives a WHERE {_OF_SCOPE}"
_FORGET = "DELETE FROM memory.word_samples WHERE organization_id = $1 AND scope_id = $2"
# The keys come out of an index; only what is chosen is read.
_TAKE = f"""
WITH chosen AS MATERIALIZED (
    SELECT p.archive_id, p.id FROM memory.archives a
    JOIN memory.passages p ON p.organization_id = a.organization_id AND p.archive_id = a.id
    WHERE {_OF_SCOPE} AND random() < $3
), taken AS (
    INSERT INTO memory.word_samples (organization_id, scope_id, passages, sampled)
    SELECT $1, $2, $4, count(*) FROM chosen
)
INSERT INTO memory.word_counts (organization_id, scope_id, lexeme, share)
SELECT $1, $2, word.lexeme, count(*)::float8 / (SELECT count(*) FROM chosen)
FROM chosen
JOIN memory.passages p ON p.organization_id = $1 AND p.archive_id = chosen.archive_id AND p.id = chosen.id
CROSS JOIN unnest(tsvector_to_array(p.words)) AS word (lexeme)
WHERE word.lexeme NOT LIKE '@%'
GROUP BY word.lexeme
HAVING count(*) >= $5
"""


class PostgresSamples:
    """`word_samples.SampleStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def take(self, organization_id: UUID, scope_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_FORGET, organization_id, scope_id)
            passages = await connection.fetchval(_PASSAGES, organization_id, scope_id)
            if not passages:
                return
            share = min(1.0, SAMPLED / passages)
            least = fewest(Sample(passages, max(1, round(share * passages))))
            await connection.execute(_TAKE, organization_id, scope_id, share, passages, least)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The share of the passages that have each lexeme. old: archives, or the tenant, of which to take a sample."""

    shares: dict[str, float]
    old: Sequence[UUID]


async def frequencies(connection: Any, organization_id: UUID, part: Part, lexemes: Sequence[str]) -> Frequencies:
    """Returns shares from samples; where most of the part has none, from its newest passages."""
    scopes = [organization_id] if part.archive_ids is None else part.archive_ids
    if part.archive_ids is None:
        rows = await connection.fetch(_SAMPLE_OF_TENANT, organization_id, scopes, lexemes, part.passages)
    else:
        rows = await connection.fetch(_SAMPLES_OF_ARCHIVES, organization_id, scopes, lexemes)
    samples_by_scope = {
        row["scope_id"]: Sample(row["passages"], row["sampled"]) for row in rows if row["passages"] is not None
    }
    old = [row["scope_id"] for row in rows if is_old(samples_by_scope.get(row["scope_id"]), row["passage_count"])]
    samples = list(samples_by_scope.values())
    if 2 * sum(sample.passages for sample in samples) < part.passages:
        return Frequencies(await _shares_at_first(connection, organization_id, part, lexemes), old)
    return Frequencies(_mean_shares(rows, lexemes, samples), old)


def _mean_shares(rows: Sequence[Any], lexemes: Sequence[str], samples: Sequence[Sample]) -> dict[str, float]:
    """Returns shares of all that was sampled; of words that no sample has, the supposed one."""
    total = sum(sample.passages for sample in samples)
    known: dict[str, float] = {}
    for row in rows:
        for lexeme, share in zip(row["lexemes"], row["shares"], strict=True):
            known[lexeme] = known.get(lexeme, 0.0) + share * row["passages"] / total
    return dict.fromkeys(lexemes, unknown_share(samples)) | known


async def _shares_at_first(
    connection: Any, organization_id: UUID, part: Part, lexemes: Sequence[str]
) -> dict[str, float]:
    statement = _SHARES_AT_FIRST.format(newest=newest(part, "$3"))
    queries = [quote_lexeme(lexeme) for lexeme in lexemes]
    rows = await connection.fetch(statement, organization_id, part.archive_ids, _AT_FIRST, lexemes, queries)
    return dict.fromkeys(lexemes, unknown_share([Sample(_AT_FIRST, _AT_FIRST)])) | dict(rows)


class SampleRequests:
    """Asks for samples, of each scope now and then."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._asked: dict[UUID, float] = {}

    async def ask(self, organization_id: UUID, scopes: Sequence[UUID]) -> None:
        """Asks for samples, unless that was done within the last minute."""
        now = time.monotonic()
        for scope in scopes:
            if now - self._asked.get(scope, -_PAUSE_SECONDS) < _PAUSE_SECONDS:
                continue
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            self._asked[scope] = now
            await add_job(self._pool, organization_id, WORD_SAMPLE, str(scope))
