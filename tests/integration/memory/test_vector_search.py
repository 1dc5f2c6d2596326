"""Search by vectors among 40,000: each of the three statements, its plan, what it finds of what there is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pytest

from services.common import vector_indexes, vectors
from services.common.database import open_pool
from services.common.vector_indexes import read_state, tend
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part
from services.memory.core.ranking.vector_choice import VectorPlan
from services.memory.jobs.model import Job, Reschedule
from services.memory.passages.model import PassageFilter
from services.memory.passages.store.passages import PostgresPassages
from services.memory.search.store.rankings import PostgresRankings
from services.memory.search.store.vector_indexes import INDEX_JOB, VectorIndexing, index_of
from tests.integration.memory.harness import Memory
from tests.integration.memory.vector_rows import DIMENSIONS, FIRST_DAY, Tenant, clustered, tenant, wire
from tests.postgres import Postgres

LIMIT = 50
QUERIES = 20
RECALL = 0.95


@dataclass
class World:
    """Tenants that hold 0.01 %, 1 % and 99 % of one model's vectors, and what was asked of the database."""

    url: str
    model: EmbeddingModel
    tenants: dict[str, Tenant]
    asked: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def job(self) -> Job:
        """That keeps the index."""
        return Job(id=uuid4(), organization_id=uuid4(), kind=INDEX_JOB, subject=str(self.model.id))

    def search(self) -> tuple[str, tuple[Any, ...]]:
        """The last one, with its values."""
        return next((statement, values) for statement, values in reversed(self.asked) if "<=>" in statement)

    def way(self) -> VectorPlan:
        """Of the last search."""
        statement, _ = self.search()
        return (
            VectorPlan.INDEX
            if "late AS" in statement
            else VectorPlan.FETCH
            if "chosen AS" in statement
            else VectorPlan.READ
        )


@pytest.fixture(scope="module")
def world(memory_url: str) -> World:
    """With the index that the job builds."""

    async def made() -> World:
        async with await open_pool(memory_url, size=2, init=vectors.register) as pool:
            model = await PostgresPassages(pool).embedding_model("test/clusters", DIMENSIONS)
            async with pool.acquire() as connection:
                sizes = {"0.01 %": 4, "1 %": 396, "99 %": 39_600}
                tenants = {
                    name: await tenant(connection, model, size, seed) for seed, (name, size) in enumerate(sizes.items())
                }
                await connection.execute("ANALYZE memory.passages, memory.passage_tags, memory.passage_vectors")
            world = World(memory_url, model, tenants)
            assert await VectorIndexing(pool, memory_url, memory_mib=512).handle(world.job()) is None
            return world

    return asyncio.run(made())


@pytest.fixture
async def pool(world: World) -> AsyncIterator[asyncpg.Pool]:
    """One connection, whose statements are kept."""

    async def prepare(connection: Any) -> None:
        await vectors.register(connection)
        connection.add_query_logger(lambda query: world.asked.append((query.query, query.args)))

    async with await open_pool(world.url, size=1, init=prepare) as pool:
        world.asked.clear()
        yield pool


@pytest.mark.parametrize(
    ("name", "wanted", "chosen", "way"),
    [
        ("0.01 %", PassageFilter(), lambda n: n >= 0, VectorPlan.READ),
        ("1 %", PassageFilter(), lambda n: n >= 0, VectorPlan.READ),
        ("1 %", PassageFilter(tags=("common",)), lambda n: n % 3 == 0, VectorPlan.READ),
        ("99 %", PassageFilter(), lambda n: n >= 0, VectorPlan.INDEX),
        ("99 %", PassageFilter(tags=("rare",)), lambda n: n % 200 == 0, VectorPlan.FETCH),
        ("99 %", PassageFilter(tags=("rare", "common"), match_all_tags=True), lambda n: n % 600 == 0, VectorPlan.FETCH),
        ("99 %", PassageFilter(tags=("common",)), lambda n: n % 3 == 0, VectorPlan.INDEX),
        ("99 %", PassageFilter(start=FIRST_DAY + timedelta(days=980)), lambda n: n % 1_000 >= 980, VectorPlan.FETCH),
        ("99 %", PassageFilter(end=FIRST_DAY + timedelta(days=499)), lambda n: n % 1_000 < 500, VectorPlan.INDEX),
        (
            "99 %",
            PassageFilter(tags=("common",), start=FIRST_DAY + timedelta(days=800)),
            lambda n: (n % 3 == 0) & (n % 1_000 >= 800),
            VectorPlan.INDEX,
        ),
    ],
)
async def test_ten_nearest(
    world: World, pool: asyncpg.Pool, name: str, wanted: PassageFilter, chosen: Callable[[Any], Any], way: VectorPlan
) -> None:
    """Recall@10 against an exact computation, by the way that is meant; and the plan of that statement."""
    tenant, found = world.tenants[name], 0
    numbers = np.arange(len(tenant.vectors))
    numbers = numbers[chosen(numbers)]
    rankings, possible = PostgresRankings(pool), 0
    for query in clustered(QUERIES, seed=99):
        best = await rankings.by_vector(tenant.organization_id, tenant.part, world.model, query, wanted, LIMIT)
        expected = tenant.nearest(query, numbers, 10)
        assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
        assert {one.passage_id.int for one in best} <= set(numbers.tolist())
        found += len({one.passage_id for one in best[:10]} & set(expected))
        possible += len(expected)
    await asyncio.sleep(0.01)
    assert world.way() is way
    assert found >= RECALL * possible, f"{found} of {possible}"
    plan = await _plan(pool, world.search())
    assert (index_of(world.model.id, DIMENSIONS).name in plan) == (way is VectorPlan.INDEX), plan
    assert way is VectorPlan.INDEX or "passage_vectors_pkey" in plan or name == "99 %", plan
    assert way is VectorPlan.READ or "Seq Scan" not in plan, plan
    assert way is not VectorPlan.FETCH or "Hash Join" not in plan, plan


async def _plan(pool: asyncpg.Pool, asked: tuple[str, tuple[Any, ...]]) -> str:
    """With the settings of the search."""
    statement, values = asked
    async with pool.acquire() as connection, connection.transaction():
        for setting in ("enable_sort", "enable_hashjoin", "enable_mergejoin"):
            off = {"enable_sort": "late AS" in statement}.get(setting, "chosen AS" in statement)
            await connection.execute(f"SET LOCAL {setting} = {'off' if off else 'on'}")
        await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        rows = await connection.fetch(f"EXPLAIN (COSTS OFF) {statement}", *values)
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize(("tags", "way"), [((), VectorPlan.INDEX), (("rare",), VectorPlan.FETCH)])
async def test_all_archives_of_a_tenant(
    world: World, pool: asyncpg.Pool, tags: tuple[str, ...], way: VectorPlan
) -> None:
    """Where no archive is named."""
    tenant = world.tenants["99 %"]
    part = Part(None, len(tenant.vectors))
    [query] = clustered(1, seed=98)
    rankings, wanted = PostgresRankings(pool), PassageFilter(tags=tags)
    best = await rankings.by_vector(tenant.organization_id, part, world.model, query, wanted, LIMIT)
    numbers = np.arange(0, len(tenant.vectors), 200 if tags else 1)
    assert len({one.passage_id for one in best[:10]} & set(tenant.nearest(query, numbers, 10))) >= 9
    await asyncio.sleep(0.01)
    assert world.way() is way
    plan = await _plan(pool, world.search())
    assert (index_of(world.model.id, DIMENSIONS).name in plan) == (way is VectorPlan.INDEX), plan


async def test_what_waits_is_found_and_taken_in_and_what_is_gone_is_not(world: World, pool: asyncpg.Pool) -> None:
    tenant = world.tenants["99 %"]
    [query] = clustered(1, seed=7)
    key = tenant.organization_id, tenant.archive_id
    late, gone = [uuid4() for _ in range(40)], tenant.nearest(query, np.arange(len(tenant.vectors)), 40)
    await pool.execute(
        "INSERT INTO memory.passages (organization_id, archive_id, id, text, words, word_count, created_by_id, "
        "last_updated_by_id) SELECT $1, $2, id, 'x', '', 1, id, id FROM unnest($3::uuid[]) AS id", *key, late
    )  # fmt: skip
    await pool.execute(
        "INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding) "
        "SELECT $1, $2, id, $4, $5 FROM unnest($3::uuid[]) AS id", *key, late, world.model.id, wire(query)
    )  # fmt: skip
    await pool.execute("DELETE FROM memory.passages WHERE archive_id = $1 AND id = ANY($2)", key[1], gone)

    async def found() -> set[UUID]:
        ranking = PostgresRankings(pool).by_vector(key[0], tenant.part, world.model, query, PassageFilter(), LIMIT)
        return {one.passage_id for one in await ranking}

    assert (before := await found()) >= set(late)
    assert not before & set(gone)
    index = index_of(world.model.id, DIMENSIONS)
    assert (await read_state(pool, index)).waiting == 40
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_indexes, "MOST_WAITING", 30)
        assert await tend(world.url, index, memory_mib=64)
    assert (await read_state(pool, index)).waiting == 0
    assert await found() == before
    await asyncio.sleep(0.01)
    assert world.way() is VectorPlan.INDEX


async def test_the_index_is_asked_for_and_built_again_when_it_is_broken(
    memory: Memory, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vector_indexes, "LEAST_VECTORS", 100)
    async with memory.pool.acquire() as connection:
        model = await PostgresPassages(memory.pool).embedding_model("test/few", DIMENSIONS)
        few = await tenant(connection, model, 200, seed=1)
    index = index_of(model.id, DIMENSIONS)

    async def search() -> None:
        part = Part(few.part.archive_ids, 20_000)
        rankings = PostgresRankings(memory.pool)
        assert len(await rankings.by_vector(few.organization_id, part, model, few.vectors[0], PassageFilter(), 5)) == 5

    await search()
    worker = memory.worker()
    assert await worker.run_one(), "a search asks for the index"
    state = await read_state(memory.pool, index)
    assert (state.valid, state.vectors, state.waiting) == (True, 200, 0)
    await search()
    assert not await worker.run_one(), "once"

    database = await memory.pool.fetchval("SELECT current_database()")
    superuser = await asyncpg.connect(postgres.superuser_url(database))
    await superuser.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::text::regclass", f"memory.{index.name}"
    )
    assert (await read_state(memory.pool, index)).overdue
    lock = "SELECT pg_advisory_lock(hashtextextended($1, 0))"
    await superuser.fetchval(lock, f"memory.{index.name}")
    job = Job(id=uuid4(), organization_id=few.organization_id, kind=INDEX_JOB, subject=str(model.id))
    indexing = VectorIndexing(memory.pool, memory.url, memory_mib=64)
    assert isinstance(await indexing.handle(job), Reschedule), "another replica builds it"
    await superuser.execute("SELECT pg_advisory_unlock_all()")

    await superuser.execute("GRANT USAGE ON SCHEMA memory TO loci_agent")
    await superuser.execute("GRANT SELECT ON ALL TABLES IN SCHEMA memory TO loci_agent")
    with caplog.at_level(logging.WARNING):
        assert await tend(postgres.service_url("agent", database), index, memory_mib=64)
    assert "does not own memory.passage_vectors" in caplog.text
    assert not (await read_state(memory.pool, index)).valid

    assert await indexing.handle(job) is None
    assert (await read_state(memory.pool, index)).valid
    await superuser.execute(f"DROP INDEX memory.{index.name}")
    await search()
    assert await worker.run_one()
    assert (await read_state(memory.pool, index)).valid, "also where somebody has removed it, and nothing waits"
    await superuser.close()
