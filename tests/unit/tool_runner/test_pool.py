"""The pool: who is kept warm, who gets which worker, and that none is left or used twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.tool_runner.core.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.ports import DeliveryUnknown
from tests.polling import until
from tests.unit.tool_runner.fake_workers import FakeSource


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
async def pool(source: FakeSource) -> AsyncIterator[PooledSandbox]:
    made = PooledSandbox(source, warm=2)
    yield made
    await made.close()


def job(function: str = "echo", *, session: str = "", tenant: str = "", memory: int = 1, seconds: float = 5.0) -> Job:
    limits = Limits(memory=memory, seconds=seconds)
    return Job("", function, {}, limits=limits, session=session, tenant=tenant)


async def test_nothing_is_started_before_the_first_call(source: FakeSource, pool: PooledSandbox) -> None:
    assert (pool.name, pool.image) == ("fake", "image:1")
    await asyncio.sleep(0.1)
    assert source.workers == []
    assert (await pool.run(job(tenant="t"))).result == "0"
    await until(lambda: source.waiting == [1, 2])
    assert [tenant for _, tenant in source.shapes] == ["t", "", ""]


async def test_each_worker_serves_one_call(source: FakeSource, pool: PooledSandbox) -> None:
    seen = []
    for _ in range(6):
        seen.append((await pool.run(job())).result)
        await asyncio.sleep(0.02)
    assert len(set(seen)) == 6
    assert [worker.calls for worker in source.workers if worker.calls] == [["echo"]] * 6
    await until(lambda: all(worker.closed for worker in source.workers if worker.calls))
    await until(lambda: len(source.waiting) == 2)


async def test_calls_of_other_shapes_have_workers_of_their_own(source: FakeSource, pool: PooledSandbox) -> None:
    await pool.run(job(memory=1))
    await pool.run(job(memory=2))
    await until(lambda: len(source.waiting) == 4)
    assert sorted(shape.memory for shape, _ in source.shapes) == [1, 1, 1, 2, 2, 2]


async def test_a_worker_that_ended_while_it_waited_is_not_handed_out(source: FakeSource, pool: PooledSandbox) -> None:
    await pool.run(job())
    await until(lambda: source.waiting == [1, 2])
    source.workers[1].end()
    await asyncio.sleep(0)
    assert (await pool.run(job())).result == "2"
    await until(lambda: source.workers[1].closed and len(source.waiting) == 2)
    source.workers[source.waiting[0]].refuses = BrokenPipeError()  # it ends just now
    assert (await pool.run(job())).reason is ExitReason.OK


async def test_a_call_that_may_have_arrived_is_not_made_again(source: FakeSource, pool: PooledSandbox) -> None:
    await pool.run(job())
    await until(lambda: source.waiting == [1, 2])
    source.workers[1].refuses = DeliveryUnknown("the answer was lost")
    result = await pool.run(job())
    assert result.reason is ExitReason.KILLED
    assert result.error is not None
    assert "whether the tool began is not known" in result.error.message
    assert [worker.calls for worker in source.workers if worker.calls] == [["echo"]]


@pytest.mark.parametrize("function", ["die", "garble"])
async def test_a_worker_that_fails_is_a_killed_call_and_never_a_second_one(
    source: FakeSource, pool: PooledSandbox, function: str
) -> None:
    result = await pool.run(job(function))
    assert result.reason is ExitReason.KILLED
    assert result.error is not None
    assert source.workers[0].closed
    assert sum(function in worker.calls for worker in source.workers) == 1


async def test_memory_is_blamed_for_what_it_killed(source: FakeSource, pool: PooledSandbox) -> None:
    assert (await pool.run(job("killed"))).reason is ExitReason.KILLED
    for function in ("killed", "die"):
        await until(lambda: len(source.waiting) == 2)
        for worker in source.workers:
            worker.out_of_memory = True
        assert (await pool.run(job(function))).reason is ExitReason.MEMORY


async def test_cancelling_ends_the_worker_first(source: FakeSource, pool: PooledSandbox) -> None:
    running = asyncio.create_task(pool.run(job("hang")))
    await until(lambda: bool(source.workers and source.workers[0].calls))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert source.workers[0].closed


async def test_a_worker_that_does_not_answer_is_given_up(
    source: FakeSource, pool: PooledSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.tool_runner.sandboxes.channel._GRACE_SECONDS", 0.0)
    monkeypatch.setattr("services.tool_runner.sandboxes.channel._FILE_BYTES_PER_SECOND", 2**40)
    result = await pool.run(job("hang", seconds=0.1))
    assert result.reason is ExitReason.TIMEOUT
    assert source.workers[0].closed


async def test_what_cannot_be_started_says_why_and_leaves_nothing(source: FakeSource, pool: PooledSandbox) -> None:
    source.broken = True
    with pytest.raises(SandboxUnavailable, match="nothing can be started"):
        await pool.run(job())
    source.broken, source.mute = False, True
    with pytest.raises(SandboxUnavailable, match="it broke"):
        await pool.run(job())
    await until(lambda: all(worker.closed for worker in source.workers))
    source.mute = False
    assert (await pool.run(job())).reason is ExitReason.OK


async def test_shapes_that_nobody_asks_for_are_forgotten(source: FakeSource) -> None:
    pool = PooledSandbox(source, warm=2)
    await pool.run(job())
    await until(lambda: len(source.waiting) == 2)
    pool._forget_seconds = 0.05
    await pool.run(job())
    await until(lambda: all(worker.closed for worker in source.workers))
    await pool.close()


async def test_closing_ends_everything(source: FakeSource) -> None:
    pool = PooledSandbox(source, warm=2)
    await pool.run(job())
    await pool.run(job(session="s", tenant="t"))
    running = asyncio.create_task(pool.run(job("hang")))
    await until(lambda: any("hang" in worker.calls for worker in source.workers))
    await pool.close()
    assert all(worker.closed for worker in source.workers)
    assert (await running).reason is ExitReason.KILLED
    with pytest.raises(SandboxUnavailable, match="stopping"):
        await pool.run(job())


async def test_none_is_kept_warm_where_none_is_wanted(source: FakeSource) -> None:
    pool = PooledSandbox(source, warm=0)
    for _ in range(2):
        await pool.run(job())
    await asyncio.sleep(0.1)
    assert len(source.workers) == 2
    await pool.close()
    assert all(worker.closed for worker in source.workers)


async def test_a_long_call_does_not_keep_its_replacement_waiting(source: FakeSource, pool: PooledSandbox) -> None:
    running = asyncio.create_task(pool.run(job("hang")))
    await until(lambda: len(source.waiting) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_session_keeps_its_worker_for_itself(source: FakeSource, pool: PooledSandbox) -> None:
    async def number(session: str, tenant: str = "t") -> Result:
        return await pool.run(job(session=session, tenant=tenant))

    first = (await number("t:1")).result
    assert (await number("t:1")).result == first
    others = {(await number("t:2")).result, (await number("t:1", tenant="u")).result, (await pool.run(job())).result}
    assert first not in others
    assert len(others) == 3
    assert (await number("t:1")).result == first
    await pool.end_session("t:1")
    assert source.workers[int(first or "")].closed
    assert (await number("t:1")).result != first


async def test_a_session_ends_with_its_worker_and_after_a_while(source: FakeSource) -> None:
    pool = PooledSandbox(source, warm=0)
    await pool.run(job("echo", session="s"))
    assert (await pool.run(job("die", session="s"))).reason is ExitReason.KILLED
    assert source.workers[0].closed
    assert (await pool.run(job(session="s"))).result == "1"
    assert (await pool.run(job(session="s", memory=7))).result == "2"  # another shape: another worker
    await pool.close()
    pool = PooledSandbox(source, warm=0, session_seconds=0.05)
    await pool.run(job(session="s"))
    await until(lambda: source.workers[3].closed)
    await pool.close()
