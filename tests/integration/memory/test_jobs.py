"""The queue of background work: one worker at a time, taken over when a worker dies, asked for again while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from services.memory.bootstrap import open_memory_pool
from services.memory.jobs.model import Handler, Job, Reschedule, pause_after
from services.memory.jobs.store import PostgresJobs
from services.memory.jobs.worker import Worker
from tests.integration.memory.harness import SIGNER


@pytest.fixture
async def pool(memory_url: str) -> AsyncIterator[asyncpg.Pool]:
    pool = await open_memory_pool(memory_url, size=3)
    await pool.execute("DELETE FROM memory.jobs")
    yield pool
    await pool.close()


def worker(pool: asyncpg.Pool, handler: Handler) -> Worker:
    return Worker(PostgresJobs(pool), {"test": handler}, SIGNER, uuid4())


async def test_a_job_is_run_once_and_gone(pool: asyncpg.Pool) -> None:
    ran: list[Job] = []

    async def handler(job: Job) -> None:
        ran.append(job)

    jobs, organization_id = PostgresJobs(pool), uuid4()
    for _ in range(2):
        await jobs.add(organization_id, "test", "one")
    one = worker(pool, handler)
    assert await one.run_one()
    assert not await one.run_one()
    assert [(job.organization_id, job.subject) for job in ran] == [(organization_id, "one")]
    assert await pool.fetchval("SELECT count(*) FROM memory.jobs") == 0


async def test_what_fails_is_tried_later_and_counted(pool: asyncpg.Pool) -> None:
    async def handler(job: Job) -> None:
        raise ValueError(job.subject)

    await PostgresJobs(pool).add(uuid4(), "test", "broken")
    one = worker(pool, handler)
    assert await one.run_one()
    assert not await one.run_one(), "it waits"
    row = await pool.fetchrow("SELECT failures, not_before > now() AS waits, worker_id FROM memory.jobs")
    assert tuple(row) == (1, True, None)


async def test_what_is_asked_for_while_it_runs_runs_again(pool: asyncpg.Pool) -> None:
    jobs, organization_id, runs = PostgresJobs(pool), uuid4(), 0

    async def handler(job: Job) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            await jobs.add(organization_id, "test", "one")

    await jobs.add(organization_id, "test", "one")
    one = worker(pool, handler)
    assert [await one.run_one() for _ in range(3)] == [True, True, False]
    assert runs == 2


async def test_a_job_of_a_dead_worker_is_taken_over_and_the_dead_one_may_not_finish_it(pool: asyncpg.Pool) -> None:
    jobs, dead, alive = PostgresJobs(pool), uuid4(), uuid4()
    await jobs.add(uuid4(), "test", "one")
    job = await jobs.claim(dead)
    assert job is not None
    assert await jobs.claim(alive) is None
    assert await jobs.renew(job, dead)
    await pool.execute("UPDATE memory.jobs SET leased_until = now() - interval '1 second'")
    sample_of = await jobs.claim(alive)
    assert sample_of == job
    assert not await jobs.renew(job, dead)
    await jobs.finish(job, dead)
    assert await jobs.renew(job, alive)


async def test_a_worker_that_is_stopped_gives_its_job_back(pool: asyncpg.Pool) -> None:
    begin = asyncio.Event()

    async def handler(job: Job) -> None:
        begin.set()
        await asyncio.sleep(60)

    await PostgresJobs(pool).add(uuid4(), "test", "one")
    running = asyncio.create_task(worker(pool, handler).run_forever())
    await begin.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    job = await PostgresJobs(pool).claim(uuid4())
    assert job is not None
    assert (job.subject, job.failures) == ("one", 0)


async def test_two_workers_share_the_queue(pool: asyncpg.Pool) -> None:
    ran: list[str] = []

    async def handler(job: Job) -> Reschedule | None:
        ran.append(job.subject)
        await asyncio.sleep(0.001)
        return None

    jobs = PostgresJobs(pool)
    for number in range(20):
        await jobs.add(uuid4(), "test", str(number))
    workers = [worker(pool, handler) for _ in range(2)]

    async def drain(one: Worker) -> None:
        while await one.run_one():
            pass

    await asyncio.gather(*map(drain, workers))
    assert sorted(ran) == sorted(map(str, range(20)))


async def test_many_jobs_of_one_tenant_do_not_hold_up_the_one_of_another(pool: asyncpg.Pool) -> None:
    jobs, many, few, worker_id = PostgresJobs(pool), uuid4(), uuid4(), uuid4()
    for number in range(20):
        await jobs.add(many, "test", str(number))
    await jobs.add(few, "test", "one")
    claimed = [await jobs.claim(worker_id) for _ in range(4)]
    assert [job and job.organization_id for job in claimed] == [many, few, many, many], "an idle lane is for anybody"


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (10_000, 300)])
def test_pauses_grow_to_five_minutes(failures: int, seconds: float) -> None:
    assert pause_after(failures) == seconds
