"""Questions that wait are answered together; who is interrupted while answering leaves them to the others."""

import asyncio
from collections.abc import Sequence

import pytest

from services.memory.agent_tools.batching import Batcher, Waiter

Question = Waiter[int, int]


class Counter:
    """Doubles numbers, when it is let; `batches` are those that were asked for at once."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.let = asyncio.Event()

    async def __call__(self, requests: Sequence[Question]) -> None:
        self.batches.append([one.question for one in requests])
        await self.let.wait()
        for one in requests:
            if one.question < 0:
                one.refuse(ValueError(str(one.question)))
            else:
                one.tell(2 * one.question)


async def turns() -> None:
    """Everybody goes as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_those_who_come_at_once_are_served_at_once() -> None:
    counter = Counter()
    together = Batcher(counter)
    counter.let.set()
    assert await asyncio.gather(*map(together.ask, range(250))) == [2 * number for number in range(250)]
    assert [len(batch) for batch in counter.batches] == [100, 100, 50]
    assert counter.batches[0] == list(range(100))


async def test_nobody_waits_where_permits_are_left() -> None:
    counter = Counter()
    together = Batcher(counter, permits=2)
    first = asyncio.create_task(together.ask(1))
    await turns()
    others = [asyncio.create_task(together.ask(number)) for number in (2, 3, 4)]
    await turns()
    counter.let.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert counter.batches == [[1], [2, 3, 4]]


async def test_an_error_is_for_the_one_who_asked() -> None:
    counter = Counter()
    counter.let.set()
    answers = await asyncio.gather(*map(Batcher(counter).ask, (1, -2, 3)), return_exceptions=True)
    assert (answers[0], answers[2]) == (2, 6)
    assert isinstance(answers[1], ValueError)


@pytest.mark.parametrize("gone", [0, 1])
async def test_who_leaves_takes_nobody_along(gone: int) -> None:
    """The one who serves, and one who is served."""
    counter = Counter()
    together = Batcher(counter)
    tasks = [asyncio.create_task(together.ask(number)) for number in range(5)]
    await turns()
    tasks[gone].cancel()
    await turns()
    counter.let.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(gone), asyncio.CancelledError)
    assert answers == [2 * number for number in range(5) if number != gone]


async def test_who_leaves_before_being_served_is_not_served() -> None:
    counter = Counter()
    together = Batcher(counter)
    first = asyncio.create_task(together.ask(1))
    await turns()
    waiting = [asyncio.create_task(together.ask(number)) for number in (2, 3)]
    await turns()
    waiting[0].cancel()
    await turns()
    counter.let.set()
    assert (await first, await waiting[1]) == (2, 6)
    assert counter.batches == [[1], [3]]


async def test_a_failure_of_the_service_is_not_swallowed() -> None:
    calls = 0

    async def fail_once(requests: Sequence[Question]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError
        for one in requests:
            one.tell(one.question)

    together = Batcher(fail_once)
    answers = await asyncio.gather(*map(together.ask, range(3)), return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, int)] == [1, 2]
    assert isinstance(answers[0], OSError)
