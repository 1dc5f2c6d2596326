"""Events of the runs that this replica drives, for readers in this process. A reader that lags is cut."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

from services.agent.events import Abandoned, Delta, Event
from services.common.errors import Unavailable

# Events that a reader may lie behind.
LONGEST_BACKLOG = 2_000


class Subscription:
    """One reader's place in a run's events. Iterating ends when the run ends or its driver is gone."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._backlog: asyncio.Queue[Event | None] = asyncio.Queue()
        self._lagging = False
        for event in events:
            self._backlog.put_nowait(event)
        self._longest = LONGEST_BACKLOG + self._backlog.qsize()

    def put(self, event: Event | None) -> None:
        """Hands an event over; None: there will be no more."""
        if event is not None and self._backlog.qsize() >= self._longest:
            self._lagging = True
            return
        self._backlog.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events. Raises Unavailable (READER_LAGS)."""
        while (event := await self._backlog.get()) is not None:
            if self._lagging:
                raise Unavailable("This reader fell behind; resume from its last sequence.", reason="READER_LAGS")
            yield event


class Hub:
    """Topics by run: open while this process drives the run.

    A topic keeps what was shown since the last durable event, unless that is very much: a reader that comes in the
    middle of a message gets its beginning, and word of an abandoned attempt, neither of which is stored.
    """

    def __init__(self) -> None:
        self._readers: dict[UUID, set[Subscription]] = {}
        self._driven: dict[UUID, list[Event] | None] = {}
        self._opened: dict[UUID, asyncio.Event] = {}
        self._present: Counter[UUID] = Counter()

    def open(self, run_id: UUID) -> None:
        """This process drives the run from now on."""
        self._driven[run_id] = []
        if (opened := self._opened.pop(run_id, None)) is not None:
            opened.set()

    def publish(self, run_id: UUID, event: Event) -> None:
        """Shows an event to the run's readers."""
        recent = self._driven[run_id]
        if not isinstance(event, Delta | Abandoned):
            self._driven[run_id] = []
        elif recent is not None:
            # A part of them would be a hole: too many are none.
            recent.append(event)
            self._driven[run_id] = None if len(recent) > LONGEST_BACKLOG else recent
        for reader in self._readers.get(run_id, ()):
            reader.put(event)

    def close(self, run_id: UUID) -> None:
        """This process drives the run no longer."""
        self._driven.pop(run_id, None)
        for reader in self._readers.get(run_id, ()):
            reader.put(None)

    def subscribe(self, run_id: UUID) -> Subscription | None:
        """A place in the run's events; None when another process drives it, or nobody."""
        if run_id not in self._driven:
            return None
        subscription = Subscription(self._driven[run_id] or ())
        self._readers.setdefault(run_id, set()).add(subscription)
        return subscription

    def unsubscribe(self, run_id: UUID, subscription: Subscription) -> None:
        """The reader is gone."""
        readers = self._readers.get(run_id, set())
        readers.discard(subscription)
        if not readers:
            self._readers.pop(run_id, None)

    @contextmanager
    def present(self, run_id: UUID) -> Iterator[None]:
        """Somebody reads the run here, or waits for it to begin."""
        self._present[run_id] += 1
        try:
            yield
        finally:
            self._present[run_id] -= 1
            if not self._present[run_id]:
                del self._present[run_id]

    def is_read(self, run_id: UUID) -> bool:
        """Whether somebody does."""
        return run_id in self._present

    async def opened(self, run_id: UUID, seconds: float) -> None:
        """Waits until this process drives the run, but not longer than `seconds`."""
        event = self._opened.setdefault(run_id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            if not event.is_set():
                self._opened.pop(run_id, None)
