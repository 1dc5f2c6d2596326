"""Waiting for something unless something else happens first."""

import asyncio
from typing import Any

import pytest

from services.common.interruption import Interrupted, run_unless


def future() -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().create_future()


async def test_what_comes_first_is_given() -> None:
    stop, work = future(), future()
    asyncio.get_running_loop().call_soon(work.set_result, 7)
    assert await run_unless(stop, work) == 7
    # What is done later disturbs nobody any more.
    stop.set_result("late")
    await asyncio.sleep(0)


async def test_work_that_is_done_at_once_is_given_whatever_else_happens() -> None:
    async def work() -> int:
        return 7

    stop = future()
    stop.set_result(None)
    assert await run_unless(stop, work()) == 7
    await asyncio.sleep(0)


async def test_work_is_cancelled_and_waited_for() -> None:
    ended = []
    stop = future()

    async def work() -> None:
        try:
            stop.set_result(None)
            await asyncio.sleep(60)
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(True)

    with pytest.raises(Interrupted):
        await run_unless(stop, work())
    assert ended == [True]
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_errors_of_the_work_are_its_own() -> None:
    async def work(error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    for error in (TimeoutError("its own"), ValueError("x")):
        with pytest.raises(type(error), match=str(error)):
            await run_unless(future(), work(error))


async def test_who_waits_may_be_cancelled() -> None:
    stop = future()
    task = asyncio.create_task(run_unless(stop, asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not stop.done()


async def test_both_at_once_is_one_of_them() -> None:
    """Whichever it is, nothing is left over."""
    for order in (0, 1):
        stop, work = future(), future()
        waiting = asyncio.create_task(run_unless(stop, work))
        await asyncio.sleep(0)
        for one in (stop, work) if order else (work, stop):
            one.set_result(7)
        try:
            assert await waiting == 7
        except Interrupted:
            assert stop.done()
        await asyncio.sleep(0)
