"""Following a run from any replica: what is stored of it first, then live events where it is driven here.

Elsewhere it is looked at whenever its driver says that it has shown more, and once a second.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.agent.core.events import Abandoned, Delta, Ended, Event, MessagePiece
from services.agent.core.ports_journal import Journal
from services.agent.core.ports_streams import FrameStore, Notifier, RunPlace
from services.agent.core.stored_stream import DeltaFrame, Item, last_position, position
from services.agent.streams.broadcast import EventHub, Subscription
from services.common.errors import FailedPrecondition

# How often a reader looks at a run that another replica drives, or nobody, when it hears nothing: sooner while that
# replica may not know of it yet.
FIRST_POLL_SECONDS, POLL_SECONDS = 0.05, 1.0
# A reader may come with a position that is not stored yet; it is looked for so often, after such a pause.
_LOOKS, _PAUSE_SECONDS = 6, 0.03
_HOUR = timedelta(hours=1)


class ReaderPosition:
    """The position of one reader in one run, so that it gets each event once.

    after: what it has seen before. wants_context: it wants to be told again what it has seen of a message under way.
    """

    def __init__(self, after: int, *, wants_context: bool, known_from: int) -> None:
        self.after = after
        self.position = known_from if wants_context else after
        self.facts = 0
        self._wants_context = wants_context
        self._is_found = not (wants_context and after)
        # Attempts of which the reader knows, or is about to, that they were abandoned.
        self._void: set[tuple[UUID, int]] = set()

    def news(self, items: Iterable[Item]) -> Iterator[Event]:
        """Yields what is new among items in the order of their positions."""
        for item in items:
            if isinstance(item, DeltaFrame):
                yield from self._pieces(item)
            elif isinstance(item, Ended) or item.sequence > self.position:
                yield from self._one(item)

    def finds(self, frames: Iterable[Item], events: Iterable[Event]) -> bool:
        """Returns whether what the reader has seen last is among what is stored; asked until it is."""
        self._is_found |= any(position(item) <= self.after <= last_position(item) for item in (*frames, *events))
        return self._is_found

    def merged(self, frames: Iterable[Item], events: Iterable[Event]) -> list[Item]:
        """Returns frames and events of facts in one order; a durable message replaces what is left of its deltas.

        A reader that has got a piece of a durable message whole got it in place of the deltas: it knows none of the
        pieces after it, although their deltas have lower positions.
        """
        frames, events = list(frames), list(events)
        durable: dict[UUID, int] = {}
        for event in events:
            if isinstance(event, MessagePiece):
                durable[event.message.id] = min(event.sequence, durable.get(event.message.id, event.sequence))
        abandoned = {(frame.step_id, frame.attempt) for frame in frames if isinstance(frame, Abandoned)} | self._void
        items: list[Item] = []
        for frame in frames:
            if isinstance(frame, DeltaFrame) and (first_piece := durable.get(frame.message_id)) is not None:
                before = frame.between(self.position, self.after) if self.after < first_piece else None
                items += [] if before is None else [before]
            else:
                items.append(frame)
        # Facts tell of abandoned attempts, too, for readers who were not told at the time.
        items += [
            each for each in events if not (isinstance(each, Abandoned) and (each.step_id, each.attempt) in abandoned)
        ]
        return sorted(items, key=position)

    def _pieces(self, item: DeltaFrame) -> Iterator[Event]:
        if self._wants_context and (before := item.between(self.position, self.after)) is not None:
            yield before
        if (rest := item.between(max(self.position, self.after))) is not None:
            yield rest
        self.position = max(self.position, item.last)

    def _one(self, item: Event) -> Iterator[Event]:
        if isinstance(item, Abandoned):
            self._void.add((item.step_id, item.attempt))
        is_context = self._wants_context and isinstance(item, Delta | Abandoned)
        if item.sequence > self.after or is_context or isinstance(item, Ended):
            yield item
        self.position = max(self.position, item.sequence)


class Reader:
    """Reads runs of one tenant. `keep` is how long streams are stored."""

    def __init__(
        self, journal: Journal, hub: EventHub, frames: FrameStore, notifier: Notifier, *, keep: timedelta
    ) -> None:
        self._journal = journal
        self._hub = hub
        self._frames = frames
        self._notifier = notifier
        self._keep = keep

    def leave(self, run_id: UUID, subscription: Subscription | None) -> None:
        """Gives up a subscription that was never followed."""
        if subscription is not None:
            self._hub.unsubscribe(run_id, subscription)

    async def follow(
        self,
        organization_id: UUID,
        run_id: UUID,
        *,
        after: int = 0,
        wants_context: bool = False,
        subscription: Subscription | None = None,
    ) -> AsyncGenerator[Event]:
        """Yields the events of a run after a position, until it ends.

        `wants_context`: deltas before that position come first, where they are the beginning of a message that was not
        whole then. `subscription` is the first reader's, who missed nothing. Raises NotFound (RUN_NOT_FOUND),
        Unavailable (READER_LAGS).
        """
        with self._hub.present(run_id) as woken:
            # There before the run is driven: what a fast one shows, it shows this reader, too.
            live = subscription or self._hub.subscribe(run_id)
            try:
                run_place = None if subscription else await self._frames.place(organization_id, run_id, after)
                known_from = run_place.known_from if run_place else 0
                place = ReaderPosition(after, wants_context=wants_context, known_from=known_from)
                pause = FIRST_POLL_SECONDS
                while True:
                    woken.clear()
                    stored = [] if run_place is None else await self._stored(organization_id, run_id, run_place, place)
                    is_here = self._hub.drives(run_id) or live.begin is not None
                    async with aclosing(_chain(stored, live if is_here else None)) as items:
                        async for item in items:
                            for event in place.news((item,)):
                                yield event
                                if isinstance(event, Ended):
                                    return
                    if is_here:
                        self._hub.unsubscribe(run_id, live)
                        live = self._hub.subscribe(run_id)
                    else:
                        self._notifier.tell("watched", run_id)
                        await _until(woken, pause)
                        pause = min(2 * pause, POLL_SECONDS)
                    run_place = run_place or await self._frames.place(organization_id, run_id, after)
            finally:
                self._hub.unsubscribe(run_id, live)

    async def _stored(
        self, organization_id: UUID, run_id: UUID, run_place: RunPlace, place: ReaderPosition
    ) -> list[Item]:
        """Returns what is stored of a run, from where the reader is.

        Frames first: facts read after them lack none before.
        """
        for looks_left in reversed(range(_LOOKS)):
            look = await self._frames.look(organization_id, run_id, run_place.run_hour, place.position, place.after)
            events: list[Event] = []
            if look.ended or look.facts != place.facts:
                events = await self._journal.events(organization_id, run_id, place.position)
            if place.finds(look.frames, events) or not run_place.background or not looks_left:
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        place.facts = look.facts
        return place.merged(look.frames, events)

    async def check_kept(self, organization_id: UUID, run_id: UUID, after: int) -> None:
        """Raises where the reader left in the middle of a message whose deltas are kept no longer.

        Raises NotFound (RUN_NOT_FOUND), FailedPrecondition (STREAM_EXPIRED).
        """
        if after == 0:
            return
        kept = await self._frames.place(organization_id, run_id, after)
        if not kept.background or kept.run_hour + _HOUR > datetime.now(UTC) - self._keep:
            return
        if all(event.sequence != after for event in await self._journal.events(organization_id, run_id, 0)):
            raise FailedPrecondition(
                f"the stream of run-{run_id} is not kept any more, and {after} is in the middle of a message; "
                "read it from the beginning",
                reason="STREAM_EXPIRED",
            )


async def _chain(stored: Iterable[Item], live: Subscription | None) -> AsyncGenerator[Item]:
    """Yields what is stored, and then what comes.

    What was stored after the subscription began comes live, too, and behind its deltas.
    """
    begin = live.begin if live is not None else None
    for item in stored:
        if begin is None or position(item) < begin:
            yield item
    if live is not None:
        async for item in live:
            yield item


async def _until(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        pass
