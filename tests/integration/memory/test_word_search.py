"""Search by words in a large archive: against a library's BM25, with filters, and what it reads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import bm25s
import numpy as np
import pytest

from services.common.core.ranking import BM25_B, BM25_K1
from services.memory.core.ranking.search import Part, Scope
from services.memory.passages.model import PassageFilter
from services.memory.search.store.by_words import WordSearch
from services.memory.search.store.word_samples import frequencies
from services.memory.search.store.word_statements import SETTINGS
from tests.integration.memory.harness import Memory
from tests.integration.memory.word_rows import FIRST_MINUTE, STOP, Tenant, named, stored

PASSAGES = 20_000
# Where two score the same but for rounding, either may be the tenth.
ROUNDING = 1.001


@pytest.fixture(scope="module")
def tenant(memory_url: str) -> Tenant:
    """20,000 passages, after 5,000 of another tenant."""
    return asyncio.run(_tenant(memory_url))


async def _tenant(memory_url: str) -> Tenant:
    connection = await asyncpg.connect(memory_url)
    await stored(connection, 5_000, seed=3)
    created = await stored(connection, PASSAGES, seed=4)
    for table in ("passages", "passage_tags", "archives"):
        await connection.execute(f"VACUUM ANALYZE memory.{table}")
    await connection.close()
    return created


@pytest.fixture(scope="module")
def library(tenant: Tenant) -> bm25s.BM25:
    """Exact BM25 over the tenant's texts; `get_scores(words)` is by number of the passage."""
    created = bm25s.BM25(method="lucene", k1=BM25_K1, b=BM25_B)
    created.index([named(text) for text in tenant.texts], show_progress=False)
    return created


async def found(memory: Memory, tenant: Tenant, words: list[str], expected: PassageFilter | None = None) -> list[int]:
    """Numbers of passages, best first."""
    ranking = await memory.stores.rankings.by_words(
        tenant.organization_id, tenant.scope, " ".join(words), expected or PassageFilter(), 50
    )
    return [one.passage_id.int for one in ranking]


async def sample(memory: Memory, tenant: Tenant) -> None:
    """Takes what searches have asked for."""
    await found(memory, tenant, ["w1"])
    worker = memory.worker()
    while await worker.run_one():
        pass


def known_items(tenant: Tenant, count: int) -> list[tuple[int, list[str]]]:
    """Passages by two to four of their words."""
    drawn = np.random.default_rng(6)
    items = []
    for size in drawn.integers(2, 5, count):
        number = int(drawn.integers(PASSAGES))
        words = np.unique(tenant.texts[number])
        words = words[words >= STOP]
        items.append((number, named(drawn.choice(words, min(int(size), len(words)), replace=False))))
    return items


def mixed(count: int) -> list[list[str]]:
    """Two to five words from common to rare."""
    drawn = np.random.default_rng(7)
    return [
        named(np.unique((STOP * np.exp(drawn.random(size) * np.log(250))).astype(int)))
        for size in drawn.integers(2, 6, count)
    ]


async def test_it_finds_what_the_library_finds(memory: Memory, tenant: Tenant, library: bm25s.BM25) -> None:
    """The same ten for mixed words; known passages at least as often; nearly so before there is a sample."""
    items = known_items(tenant, 60)
    scored = [(number, library.get_scores(words)) for number, words in items]
    among_ten = [(scores > scores[number]).sum() < 10 for number, scores in scored]
    without_sample = [number in (await found(memory, tenant, words))[:10] for number, words in items]
    assert sum(without_sample) >= sum(among_ten) - 3
    await sample(memory, tenant)
    assert sum([number in (await found(memory, tenant, words))[:10] for number, words in items]) >= sum(among_ten)
    same = 0
    for words in mixed(60):
        scores = library.get_scores(words)
        ten = (await found(memory, tenant, words))[:10]
        same += len(ten) == 10 and bool((scores[ten] * ROUNDING >= np.sort(scores)[-10]).all())
    assert same >= 57


async def test_filters_lose_nothing(memory: Memory, tenant: Tenant, library: bm25s.BM25) -> None:
    """A rare tag or some dates with common words, and what one in three has."""
    await sample(memory, tenant)
    common = named([STOP, STOP + 1])
    scores = library.get_scores(common)
    hour = PassageFilter(start=FIRST_MINUTE + timedelta(days=1), end=FIRST_MINUTE + timedelta(days=1, hours=1))
    numbers = np.arange(PASSAGES)
    for expected, left in (
        (PassageFilter(tags=("rare",)), numbers % 1_000 == 0),
        (PassageFilter(tags=("rare", "common"), match_all_tags=True), numbers % 3_000 == 0),
        (hour, (numbers >= 1_440) & (numbers <= 1_500)),
        (replace(hour, tags=("common",)), (numbers >= 1_440) & (numbers <= 1_500) & (numbers % 3 == 0)),
    ):
        assert set(await found(memory, tenant, common, expected)) == set(np.flatnonzero(left & (scores > 0)))
    many = await found(memory, tenant, common, PassageFilter(tags=("common", "none")))
    assert len(many) == 50
    assert all(number % 3 == 0 for number in many)
    assert await found(memory, tenant, common, PassageFilter(tags=("none",))) == []


async def test_scopes(memory: Memory, tenant: Tenant) -> None:
    """All of the tenant is the archive and no folder; another archive beside it is searched with it."""
    await sample(memory, tenant)
    other = uuid4()
    await memory.pool.execute(
        "INSERT INTO memory.archives (organization_id, id, name, passage_count, word_count, created_by_id, "
        "last_updated_by_id) VALUES ($1, $2, '', 1, 5, $2, $2)",
        tenant.organization_id, other,
    )  # fmt: skip
    [(number, words), *_] = known_items(tenant, 1)
    whole = tenant.scope.whole.passages
    for archives in (None, (tenant.archive_id, other)):
        scope = Scope(Part(archives, whole), tenant.scope.words, {})
        for _ in range(2):
            ranking = await memory.stores.rankings.by_words(
                tenant.organization_id, scope, " ".join(words), PassageFilter(), 10
            )
            assert number in [one.passage_id.int for one in ranking]
            while await memory.worker().run_one():
                pass
    scopes = await memory.pool.fetch(
        "SELECT scope_id FROM memory.word_samples WHERE organization_id = $1", tenant.organization_id
    )
    assert {row["scope_id"] for row in scopes} == {tenant.organization_id, tenant.archive_id}


class Explaining:
    """A connection that tells the plans of rankings beside their rows."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection
        self.plans: list[str] = []

    async def fetch(self, statement: str, *values: object) -> Any:
        """The rows."""
        if "ts_rank" in statement:
            plan = await self.connection.fetch(f"EXPLAIN (COSTS OFF) {statement}", *values)
            self.plans.append("\n".join(row[0] for row in plan))
        return await self.connection.fetch(statement, *values)

    async def fetchval(self, statement: str, *values: object) -> Any:
        """The value."""
        return await self.connection.fetchval(statement, *values)


@asynccontextmanager
async def explained(
    memory: Memory, tenant: Tenant, expected: PassageFilter
) -> AsyncIterator[tuple[WordSearch, Explaining]]:
    """A search, and the plans of its statements."""
    async with memory.pool.acquire() as connection, connection.transaction():
        await connection.execute(SETTINGS)
        explaining = Explaining(connection)
        yield WordSearch(explaining, tenant.organization_id, tenant.scope, expected, 50), explaining


@pytest.mark.parametrize(
    "words", [["w40", "w3000"], ["w20", "w21"], ["w20"], ["w1", "w2"], ["w20", "w20000", "w40000"]]
)
async def test_plans(memory: Memory, tenant: Tenant, words: list[str]) -> None:
    """Words choose by their index alone, or the newest are read; a filter that leaves few chooses by its own."""
    await sample(memory, tenant)
    part = tenant.scope.whole
    async with explained(memory, tenant, PassageFilter()) as (search, explaining):
        known = await frequencies(explaining, tenant.organization_id, part, words)
        await search.among_some(known.shares)
        await search.among_all(words)
    for plan in explaining.plans:
        assert "Bitmap Index Scan on passages_by_words" in plan or "passages_by_creation" in plan, plan
        assert "Seq Scan" not in plan, plan
        assert not re.search("passages_pkey|passages_by_id", plan), plan
    async with explained(memory, tenant, PassageFilter(tags=("rare",))) as (search, explaining):
        await search.among_some(known.shares)
    [plan] = explaining.plans
    assert "passage_tags_by_tag" in plan, plan
    assert re.search("passages_pkey|passages_by_id", plan), plan
    assert "Seq Scan" not in plan, plan


async def test_a_sample_stays_until_the_archive_has_grown(memory: Memory, tenant: Tenant) -> None:
    await sample(memory, tenant)
    first = await sample_of(memory, tenant.archive_id)
    await sample(memory, tenant)
    assert await sample_of(memory, tenant.archive_id) == first
    grown = replace(tenant.scope, whole=Part((tenant.archive_id,), PASSAGES))
    await memory.pool.execute(
        "UPDATE memory.archives SET passage_count = passage_count * 13 / 10 WHERE id = $1", tenant.archive_id
    )
    async with memory.pool.acquire() as connection:
        known = await frequencies(connection, tenant.organization_id, grown.whole, ["w1"])
    assert known.old == [tenant.archive_id]


async def test_a_sample_goes_with_its_archive(memory: Memory, memory_url: str) -> None:
    connection = await asyncpg.connect(memory_url)
    small = await stored(connection, 400, seed=5)
    await connection.close()
    await memory.stores.samples.take(small.organization_id, small.archive_id)
    assert await sample_of(memory, small.archive_id) is not None
    assert await memory.pool.fetchval("SELECT count(*) FROM memory.word_counts WHERE scope_id = $1", small.archive_id)
    await memory.stores.archives.delete(small.organization_id, small.archive_id)
    assert await sample_of(memory, small.archive_id) is None
    await memory.stores.samples.take(small.organization_id, small.archive_id)
    assert await sample_of(memory, small.archive_id) is None


async def sample_of(memory: Memory, scope_id: UUID) -> Any:
    """When the sample was."""
    return await memory.pool.fetchval("SELECT taken_at FROM memory.word_samples WHERE scope_id = $1", scope_id)
