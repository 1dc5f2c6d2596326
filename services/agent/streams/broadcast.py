"""Events of the runs that this replica drives, for readers in this process. A reader that lags is cut."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

from services.agent.core.events import Abandoned, Delta, Event
from services.agent.core.stored_stream import Frame, Item, Tail, position
from services.common.errors import Unavailable

# Events that a reader may lie behind.
LONGEST_BACKLOG = 2_000


class Subscription:
    """One reader's place in a run's events. Iterating ends when the run ends or its driver is gone.

    is_cut: the middle of the message under way is not known, so its deltas are left out: the reader gets the whole.
    begin: the position of the first event; None while there is none.
    """

    def __init__(self, frames: Iterable[Frame], *, is_cut: bool = False) -> None:
        self._backlog: asyncio.Queue[Item | None] = asyncio.Queue()
        self._lagging = False
        self._is_cut = is_cut
        self.begin: int | None = None
        for frame in frames:
            self._append(frame)
        self._longest = LONGEST_BACKLOG + self._backlog.qsize()

    def put(self, event: Event | None) -> None:
        """Hands an event over; None: there will be no more."""
        if isinstance(event, Delta) and self._is_cut:
            return
        self._is_cut = False
        if event is not None and self._backlog.qsize() >= self._longest:
            self._lagging = True
            return
        self._append(event)

    def _append(self, item: Item | None) -> None:
        if self.begin is None and item is not None:
            self.begin = position(item)
        self._backlog.put_nowait(item)

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yields the events; the first may be frames. Raises Unavailable (READER_LAGS)."""
        while (event := await self._backlog.get()) is not None:
            if self._lagging:
                raise Unavailable("This reader fell behind; resume from its last sequence.", reason="READER_LAGS")
            yield event


class EventHub:
    """Topics by run: open while this process drives the run.

    A topic keeps what was shown since the last durable event: a reader that comes in the middle of a message gets its
    beginning, and word of an abandoned attempt, neither of which is a fact.
    """

    def __init__(self) -> None:
        self._readers: dict[UUID, set[Subscription]] = {}
        self._driven: dict[UUID, Tail] = {}
        self._present: dict[UUID, set[asyncio.Event]] = {}

    def open(self, run_id: UUID) -> None:
        """This process drives the run from now on."""
        self._driven[run_id] = Tail()
        self.wake(run_id)

    def publish(self, run_id: UUID, event: Event) -> None:
        """Shows an event to the run's readers."""
        if isinstance(event, Delta | Abandoned):
            self._driven[run_id].add(event)
        else:
            self._driven[run_id].clear()
        for reader in self._readers.get(run_id, ()):
            reader.put(event)

    def close(self, run_id: UUID) -> None:
        """This process drives the run no longer."""
        self._driven.pop(run_id, None)
        for reader in self._readers.get(run_id, ()):
            reader.put(None)

    def tail(self, run_id: UUID) -> Tail:
        """Returns the deltas of a driven run since its last durable event."""
        return self._driven[run_id].clone()

    def drives(self, run_id: UUID) -> bool:
        """Returns whether this process drives the run now."""
        return run_id in self._driven

    def subscribe(self, run_id: UUID) -> Subscription:
        """Returns a place in the run's events; it stays empty while another process drives it, or nobody."""
        tail = self._driven.get(run_id) or Tail()
        subscription = Subscription(tail.copy(), is_cut=tail.is_cut)
        self._readers.setdefault(run_id, set()).add(subscription)
        return subscription

    def unsubscribe(self, run_id: UUID, subscription: Subscription) -> None:
        """Removes a reader that is gone."""
        readers = self._readers.get(run_id, set())
        readers.discard(subscription)
        if not readers:
            self._readers.pop(run_id, None)

    @contextmanager
    def present(self, run_id: UUID) -> Iterator[asyncio.Event]:
        """Marks the run as read, or waited for, in this block; `wake` sets the event."""
        woken = asyncio.Event()
        self._present.setdefault(run_id, set()).add(woken)
        try:
            yield woken
        finally:
            self._present[run_id].discard(woken)
            if not self._present[run_id]:
                del self._present[run_id]

    def is_read(self, run_id: UUID) -> bool:
        """Returns whether somebody reads the run here."""
        return run_id in self._present

    def wake(self, run_id: UUID) -> None:
        """Wakes the readers of a run: there may be something new to see."""
        for woken in self._present.get(run_id, ()):
            woken.set()
