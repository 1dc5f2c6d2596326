"""Readers that stop reading cost a bounded amount of memory, are cut, resume, and disturb nobody."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from services.agent.core.events import Delta, Ended, Event, MessagePiece
from services.agent.core.facts import RunStatus
from services.agent.core.messages import Text
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.streams.broadcast import LONGEST_BACKLOG
from services.common.errors import Unavailable
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, end, text
from tests.polling import until

DELTAS = 50_000
WORDS = [f"w{number} " for number in range(DELTAS)]


async def talk(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
    """A model that says 50,000 words, and lets others have their turn."""
    for number, word in enumerate(WORDS):
        yield PartDelta(0, "content", word)
        if number % 100 == 0:
            await asyncio.sleep(0)
    yield text("".join(WORDS))


def spoken(events: list[Event]) -> str:
    """The text of the deltas."""
    return "".join(event.part.text for event in events if isinstance(event, Delta) and isinstance(event.part, Text))


async def test_a_reader_that_never_reads(world: World) -> None:
    async with world.replica() as replica, world.replica() as other:
        replica.models.replies = [talk]
        request = world.request()
        accepted, silent = await replica.worker.accept(request, stream=True)
        assert silent is not None
        # Readers here and at another replica.
        reading = [
            asyncio.create_task(read(each.reader.follow(ORGANIZATION, accepted.run_id, wants_context=True), []))
            for each in (replica, other)
        ]
        async with asyncio.timeout(SECONDS):
            results = await asyncio.gather(*reading)
        for events in results:
            assert end(events).run.status is RunStatus.COMPLETED
            shown = [event for event in events if isinstance(event, MessagePiece)]
            assert [event.parts for event in shown] == [(Text("".join(WORDS)),)]
            sequences = [event.sequence for event in events]
            assert sequences == sorted(set(sequences))
        assert spoken(results[0]) == "".join(WORDS)
        # What is kept for those who do not read, or read later, is bounded, and gone with the run.
        assert silent._backlog.qsize() <= LONGEST_BACKLOG + 1
        publisher = replica.worker._publisher
        recorder = publisher._recorder
        await until(lambda: not (publisher.hub._driven or publisher._driven or recorder._recordings or recorder._full))
        # It reads at last, is told that it was cut, and reads on from where it was.
        seen: list[Event] = []
        with pytest.raises(Unavailable) as cut:
            await read(replica.reader.follow(ORGANIZATION, accepted.run_id, subscription=silent), seen)
        assert cut.value.reason == "READER_LAGS"
        last = seen[-1].sequence if seen else 0
        rest = await read(replica.reader.follow(ORGANIZATION, accepted.run_id, after=last), [])
        assert [type(event) for event in rest] == [MessagePiece, Ended]
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def read(events: AsyncGenerator[Event], into: list[Event]) -> list[Event]:
    """Adds a run's events, to its end."""
    async with aclosing(events) as source:
        async for event in source:
            into.append(event)
    return into
