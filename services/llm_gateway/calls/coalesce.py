"""Deltas put together, so that a fast model does not cost an event per token on every hop.

The first goes out at once; what follows is gathered, so that events are at least `interval` seconds apart. The end
goes out at once, too. A slow reader gets fewer, longer deltas; when MOST_WAITING of them wait for it, the provider is
not read any further until they are taken.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import groupby
from typing import assert_never

from services.llm_gateway.core.chat import Completed, Event, ReasoningDelta, TextDelta, ToolCallDelta

# Of some 150 bytes each: what a reader that has stopped can make one stream hold.
MOST_WAITING = 4_096


async def coalesce(events: AsyncGenerator[Event, None], interval: float) -> AsyncGenerator[Event, None]:
    """Yields the same events with neighbouring deltas joined; an error comes after everything that preceded it."""
    inbox = _Inbox()
    pump = asyncio.create_task(_pump(events, inbox))
    try:
        while not inbox.ended:
            await inbox.wait_for_events()
            for event in inbox.take():
                yield event
            if not inbox.ended:
                await inbox.wait_for_end(interval)
        for event in inbox.take():
            yield event
        await pump
    finally:
        pump.cancel()
        # Waited for, so that the connection to the provider is closed when this returns.
        await asyncio.wait((pump,))


class _Inbox:
    """The events that came from the provider and were not yet handed on. One reader waits for one thing at a time.

    Thousands of streams are open at once, and each waits forty times a second: a future and a timer cost a fraction of
    what asyncio.wait does.
    """

    def __init__(self) -> None:
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Event] = []
        self._reader: asyncio.Future[None] | None = None
        self._wants_events = False
        self._room: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        """Adds an event; Completed is the last."""
        self._waiting.append(event)
        if isinstance(event, Completed):
            self.end()
        elif self._wants_events:
            self._wake()

    def end(self) -> None:
        """Says that no more will come."""
        self.ended = True
        self._wake()

    @property
    def is_full(self) -> bool:
        """Returns whether the provider should not be read now."""
        return len(self._waiting) >= MOST_WAITING

    async def wait_for_room(self) -> None:
        """Returns when what waits was taken."""
        self._room = self._loop.create_future()
        await self._room

    def take(self) -> list[Event]:
        """Returns the events that wait, joined."""
        taken, self._waiting = self._waiting, []
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return taken if len(taken) < 2 else join_deltas(taken)

    async def wait_for_events(self) -> None:
        """Returns when there is something, or no more will come."""
        if not self._waiting and not self.ended:
            self._wants_events = True
            await self._woken()
            self._wants_events = False

    async def wait_for_end(self, seconds: float) -> None:
        """Returns when no more will come, at the latest after so many seconds."""
        timer = self._loop.call_later(seconds, self._wake)
        try:
            await self._woken()
        finally:
            timer.cancel()

    async def _woken(self) -> None:
        self._reader = self._loop.create_future()
        await self._reader

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def _pump(events: AsyncGenerator[Event, None], inbox: _Inbox) -> None:
    is_first = True
    try:
        async with aclosing(events):
            async for event in events:
                inbox.put(event)
                if is_first:
                    # The reader takes it before more of the same packet is looked at.
                    is_first = False
                    await asyncio.sleep(0)
                if inbox.is_full and not inbox.ended:
                    await inbox.wait_for_room()
    finally:
        inbox.end()


def join_deltas(events: Iterable[Event]) -> list[Event]:
    """Returns the events with neighbouring deltas of one part as one delta."""
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
