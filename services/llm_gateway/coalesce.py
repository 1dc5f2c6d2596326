"""Deltas put together, so that a fast model does not cost an event per token on every hop.

The first goes out at once; what follows is gathered and goes out every `interval` seconds. A slow reader gets
fewer, longer deltas: what waits is bounded by the length of the reply.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import groupby
from typing import assert_never

from services.llm_gateway.chat import Completed, Event, ReasoningDelta, TextDelta, ToolCallDelta


async def coalesced(events: AsyncGenerator[Event, None], interval: float) -> AsyncGenerator[Event, None]:
    """The same events with neighbouring deltas joined; an error comes after everything that preceded it."""
    inbox = _Inbox()
    pump = asyncio.create_task(_pump(events, inbox))
    try:
        while not pump.done():
            await inbox.filled.wait()
            for event in inbox.take():
                yield event
            await asyncio.wait((pump,), timeout=interval)
        for event in inbox.take():
            yield event
        await pump
    finally:
        pump.cancel()
        # Waited for, so that the connection to the provider is closed when this returns.
        await asyncio.wait((pump,))


class _Inbox:
    """What came from the provider and was not yet handed on; `filled` also says that no more will come."""

    def __init__(self) -> None:
        self._waiting: list[Event] = []
        self.filled = asyncio.Event()

    def put(self, event: Event) -> None:
        self._waiting.append(event)
        self.filled.set()

    def take(self) -> list[Event]:
        taken, self._waiting = self._waiting, []
        self.filled.clear()
        return taken if len(taken) < 2 else joined(taken)


async def _pump(events: AsyncGenerator[Event, None], inbox: _Inbox) -> None:
    try:
        async with aclosing(events):
            async for event in events:
                inbox.put(event)
    finally:
        inbox.filled.set()


def joined(events: Iterable[Event]) -> list[Event]:
    """Neighbouring deltas of one part as one delta."""
    return [_join(list(group)) for _, group in groupby(events, key=_part)]


def _part(event: Event) -> tuple[type, int]:
    return (type(event), -1) if isinstance(event, Completed) else (type(event), event.index)


def _join(group: list[Event]) -> Event:
    last = group[-1]
    match last:
        case TextDelta():
            return TextDelta(last.index, "".join(event.text for event in group if isinstance(event, TextDelta)))
        case ReasoningDelta():
            texts = (event.text for event in group if isinstance(event, ReasoningDelta))
            return ReasoningDelta(last.index, "".join(texts))
        case ToolCallDelta():
            pieces = (event.arguments for event in group if isinstance(event, ToolCallDelta))
            return ToolCallDelta(last.index, last.id, last.name, "".join(pieces))
        case Completed():
            return last
        case _:
            assert_never(last)
