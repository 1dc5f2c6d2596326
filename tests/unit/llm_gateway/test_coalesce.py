"""Deltas put together on their way out."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from services.llm_gateway.calls.coalesce import MOST_WAITING, coalesce, join_deltas
from services.llm_gateway.core.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Message,
    ReasoningDelta,
    Role,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.errors import LlmServerError
from tests.polling import until

END = Completed(Generation(Message(Role.ASSISTANT, []), FinishReason.STOP, Usage(1, 1)))


def test_neighbours_of_one_part_are_joined() -> None:
    events: list[Event] = [
        ReasoningDelta(0, "hm"),
        TextDelta(1, "a"),
        TextDelta(1, "b"),
        ToolCallDelta(2, "c", "", ""),
        ToolCallDelta(2, "c", "f", "{"),
        ToolCallDelta(2, "c", "f", "}"),
        ToolCallDelta(3, "d", "f", "{}"),
        TextDelta(1, "c"),
        END,
    ]
    assert join_deltas(events) == [
        ReasoningDelta(0, "hm"),
        TextDelta(1, "ab"),
        ToolCallDelta(2, "c", "f", "{}"),
        ToolCallDelta(3, "d", "f", "{}"),
        TextDelta(1, "c"),
        END,
    ]


async def test_the_first_comes_at_once_and_others_by_the_timer() -> None:
    read: list[Event] = []

    async def source() -> AsyncGenerator[Event, None]:
        yield TextDelta(0, "a")
        yield TextDelta(0, "b")
        yield TextDelta(0, "c")
        await until(lambda: len(read) == 2)
        yield END

    async for event in coalesce(source(), 0.04):
        read.append(event)
    assert read == [TextDelta(0, "a"), TextDelta(0, "bc"), END]


async def test_the_end_does_not_wait_for_the_timer() -> None:
    async def source() -> AsyncGenerator[Event, None]:
        for letter in "abc":
            yield TextDelta(0, letter)
        yield END

    async with asyncio.timeout(20):
        assert [event async for event in coalesce(source(), 60)] == [TextDelta(0, "a"), TextDelta(0, "bc"), END]


async def test_an_error_comes_after_what_preceded_it() -> None:
    async def source() -> AsyncGenerator[Event, None]:
        yield TextDelta(0, "a")
        yield TextDelta(0, "b")
        raise LlmServerError("gone")

    seen: list[Event] = []

    async def read() -> None:
        async for event in coalesce(source(), 0.01):
            seen.append(event)

    with pytest.raises(LlmServerError, match="gone"):
        await read()
    assert join_deltas(seen) == [TextDelta(0, "ab")]


async def test_closing_it_closes_the_source_at_once() -> None:
    closed = asyncio.Event()

    async def source() -> AsyncGenerator[Event, None]:
        try:
            yield TextDelta(0, "a")
            await asyncio.sleep(60)
        finally:
            closed.set()

    async with aclosing(coalesce(source(), 0.01)) as events:
        async for _ in events:
            break
    assert closed.is_set()


async def test_a_slow_reader_gets_fewer_longer_deltas() -> None:
    made = asyncio.Event()

    async def source() -> AsyncGenerator[Event, None]:
        for number in range(2000):
            yield TextDelta(0, str(number % 10))
            if not number % 100:
                await asyncio.sleep(0)
        made.set()
        yield END

    received = []
    async for event in coalesce(source(), 0.001):
        received.append(event)
        await made.wait()
    assert len(received) == 3
    assert "".join(event.text for event in received if isinstance(event, TextDelta)) == "0123456789" * 200


async def test_a_reader_that_stops_makes_a_stream_hold_no_more_than_the_bound() -> None:
    made = 0

    async def source() -> AsyncGenerator[Event, None]:
        nonlocal made
        for _ in range(3 * MOST_WAITING):
            made += 1
            yield TextDelta(0, "a")
        yield END

    async with aclosing(coalesce(source(), 0.0)) as events:
        received = [await anext(events)]
        for _ in range(10):
            await asyncio.sleep(0)
        # What was taken at first and what waits since; the source is not asked for more until somebody reads.
        assert made <= 2 * MOST_WAITING
        received += [event async for event in events]
    assert made == 3 * MOST_WAITING
    assert sum(len(event.text) for event in received if isinstance(event, TextDelta)) == made
    assert received[-1] is END


async def test_the_end_is_not_held_back() -> None:
    async def source() -> AsyncGenerator[Event, None]:
        yield TextDelta(0, "a")
        await asyncio.sleep(0.01)
        yield TextDelta(0, "b")
        yield END

    async with asyncio.timeout(20):
        assert [event async for event in coalesce(source(), 60)] == [TextDelta(0, "a"), TextDelta(0, "b"), END]
