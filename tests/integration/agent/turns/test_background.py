"""Background runs on several replicas: who drives them, what is stored of their streams, who reads what, and when."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from uuid import UUID

import pytest

from services.agent.adapters.leases import PostgresLeases
from services.agent.adapters.streams import notices
from services.agent.adapters.streams.frames import PostgresFrames
from services.agent.adapters.streams.notices import PostgresNotices
from services.agent.core.events import Abandoned, Delta, Ended, Event, MessagePiece
from services.agent.core.facts import RunStatus
from services.agent.core.messages import Call, Text
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.ports_streams import RunPlace
from services.agent.streams.recorder import hour_of
from services.common.database import connect
from services.common.errors import FailedPrecondition, Unavailable
from services.common.ids import uuid7
from tests.integration.agent.world import (
    ORGANIZATION,
    SECONDS,
    Replica,
    Script,
    World,
    answered,
    end,
    says,
    text,
)
from tests.polling import until


def telling(words: Sequence[str], *, pause: float = 0.0) -> Script:
    """A model that says one word after another."""

    async def tell(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        for word in words:
            yield PartDelta(0, "text", word)
            await asyncio.sleep(pause)
        yield text("".join(words))

    return tell


def gated(words: Sequence[str], gate: asyncio.Event) -> Script:
    """A model that says all its words and ends when the gate is open."""

    async def tell(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        for word in words:
            yield PartDelta(0, "text", word)
        await gate.wait()
        yield text("".join(words))

    return tell


def paced(words: Sequence[str], heard: Sequence[Event], gate: asyncio.Event) -> Script:
    """A model that says a word when all before it were heard, and ends when the gate is open."""

    async def tell(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        for word in words:
            count = len(heard) + 1
            yield PartDelta(0, "text", word)
            await until(partial(_has, heard, count), SECONDS)
        await gate.wait()
        yield text("".join(words))

    return tell


def _has(heard: Sequence[Event], count: int) -> bool:
    return len(heard) >= count


def numbered(count: int) -> list[str]:
    """Words that are all different."""
    return [f"{number} " for number in range(count)]


class Heard:
    """What a reader makes of events: per message, deltas until the message replaces them; void ones are dropped."""

    def __init__(self) -> None:
        self.said: dict[UUID, str] = {}
        self.steps: dict[UUID, UUID] = {}
        self.whole: set[UUID] = set()
        self.joined = ""

    def take(self, event: Event, *, counts: bool = True) -> None:
        """Joins text as a client does that gets each character once; `counts`: it has not got this one before."""
        match event:
            case Delta(part=Text(text=more), message_id=message_id):
                self.said[message_id] = self.said.get(message_id, "") + more
                self.steps[message_id] = event.step_id
                self.joined += more if counts else ""
            case Abandoned(message_id=None, step_id=step_id):
                for message_id in [key for key, step in self.steps.items() if step == step_id]:
                    self._void(message_id)
            case Abandoned(message_id=UUID() as message_id):
                self._void(message_id)
            case MessagePiece(parts=(Text(text=whole),), message=message):
                said = self.said.pop(message.id, "")
                assert whole.startswith(said)
                self.joined += whole[len(said) :]

    def _void(self, message_id: UUID) -> None:
        self.joined = self.joined.removesuffix(self.said.pop(message_id, ""))


def joined(events: Sequence[Event]) -> str:
    """The text of a whole stream."""
    heard = Heard()
    for event in events:
        heard.take(event)
    return heard.joined


def rises(events: Sequence[Event]) -> bool:
    """Whether each sequence is above the one before."""
    sequences = [event.sequence for event in events]
    return all(one < other for one, other in pairwise(sequences))


async def begin(replica: Replica, request: TurnRequest) -> UUID:
    """A background run."""
    accepted, subscription = await replica.worker.accept(request, stream=True)
    assert subscription is None
    return accepted.run_id


async def read(replica: Replica, run_id: UUID, after: int = 0, *, wants_context: bool = False) -> list[Event]:
    """All that a reader gets."""
    follow = replica.reader.follow(ORGANIZATION, run_id, after=after, wants_context=wants_context)
    async with asyncio.timeout(SECONDS), aclosing(follow) as events:
        return [event async for event in events]


class Listener:
    """A reader in a task; `events` is what it has got."""

    def __init__(self, replica: Replica, run_id: UUID, events: list[Event] | None = None) -> None:
        self.events = [] if events is None else events
        self._task = asyncio.create_task(self._listen(replica, run_id))

    async def _listen(self, replica: Replica, run_id: UUID) -> None:
        async with asyncio.timeout(SECONDS), aclosing(replica.reader.follow(ORGANIZATION, run_id)) as events:
            async for event in events:
                self.events.append(event)

    async def hears(self) -> None:
        """Returns when it has got something."""
        await until(lambda: self.events, SECONDS)

    async def end(self) -> list[Event]:
        """All that it got."""
        await self._task
        return self.events


async def driver(world: World, run_id: UUID) -> UUID | None:
    """The replica that drives a run."""
    found: UUID | None = await world.pool.fetchval("SELECT worker_id FROM agent.runs WHERE id = $1", run_id)
    return found


async def rows(world: World, run_id: UUID) -> int:
    """How many rows its stream has."""
    count: int = await world.pool.fetchval("SELECT count(*) FROM agent.run_frames WHERE run_id = $1", run_id)
    return count


async def until_rows(world: World, run_id: UUID, least: int) -> None:
    """Waits until so many rows are stored."""

    async def are_stored() -> bool:
        return await rows(world, run_id) >= least

    await answered(are_stored)


async def until_stored(world: World, events: Sequence[Event]) -> None:
    """Waits until the deltas of a stream's first message are stored."""
    whole = next(event for event in events if isinstance(event, MessagePiece))
    query = "SELECT max(last_sequence) >= $2 FROM agent.run_frames WHERE run_id = $1"
    await answered(lambda: world.pool.fetchval(query, whole.message.run_id, whole.sequence - 1))


# Who drives ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("by_notice_alone")
async def test_it_begins_at_once_and_ends_without_a_reader(world: World) -> None:
    async with world.replica() as replica:
        run_id = await begin(replica, world.request(background=True))
        await until(lambda: replica.models.requests)
        ended = end(await read(replica, run_id)).run
    assert ended.status is RunStatus.COMPLETED
    assert ended.background
    assert await world.pool.fetchval("SELECT count(*) FROM agent.run_queue") == 0


@pytest.mark.usefixtures("by_notice_alone")
async def test_a_replica_without_room_leaves_it_to_another(world: World) -> None:
    async with world.replica(capacity=0) as full, world.replica() as free:
        # By word of the one without room, not by the next look at the queue.
        run_id = await begin(full, world.request(background=True))
        events = await read(full, run_id)
        assert free.models.requests
        assert await driver(world, run_id) == free.journal.worker_id
    assert joined(events) == "I have nothing more to say."


async def test_a_tenant_that_is_taken_off_the_list_is_served_by_whoever_queued(world: World) -> None:
    """Another replica may find the queue empty a moment before a run is in it, and take the tenant off the list."""
    leases = PostgresLeases(world.pool, uuid7())
    await leases.register()
    async with world.replica(capacity=0) as full:
        run_id = await begin(full, world.request(background=True))
        await world.pool.execute("DELETE FROM agent.ready_tenants")
        assert await leases.claim(1) is None
        assert [row["id"] for row in await leases.claim(1, ORGANIZATION) or ()] == [run_id]
    await leases.resign()
    async with world.replica() as heir:
        assert end(await read(heir, run_id)).run.status is RunStatus.COMPLETED


async def test_it_survives_the_replica_that_accepted_it(world: World) -> None:
    async with world.replica(capacity=0) as lost:
        run_id = await begin(lost, world.request(background=True))
        await lost.die()
    async with world.replica() as other:
        assert end(await read(other, run_id)).run.status is RunStatus.COMPLETED
        assert await driver(world, run_id) == other.journal.worker_id


async def test_the_next_in_line_may_go_to_any_replica(world: World) -> None:
    gate = asyncio.Event()
    async with world.replica(capacity=1) as first, world.replica() as second:
        first.models.replies = [gated(["one"], gate)]
        accepted, _ = await first.worker.accept(world.request(), stream=True)
        waiting = await begin(first, world.request(background=True))
        await world.pool.execute(
            "UPDATE agent.conversation_heads SET active_run_id = $1 WHERE conversation_id = $2",
            accepted.run_id,
            world.agent_id,
        )
        gate.set()
        assert end(await read(second, waiting)).run.status is RunStatus.COMPLETED
        assert await driver(world, waiting) in (first.journal.worker_id, second.journal.worker_id)


async def test_a_client_that_leaves_does_not_withdraw_it(world: World) -> None:
    gate = asyncio.Event()
    async with world.replica() as replica:
        replica.models.replies = [gated(["one"], gate)]
        await replica.worker.accept(world.request(), stream=True)
        waiting = await begin(replica, world.request(background=True))
        await replica.worker.withdraw(ORGANIZATION, world.agent_id, waiting)
        gate.set()
        assert end(await read(replica, waiting)).run.status is RunStatus.COMPLETED


async def test_a_reader_from_before_the_begin_gets_the_deltas_of_the_fastest_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, gate, place = numbered(20), asyncio.Event(), PostgresFrames.place

    async def late(frames: PostgresFrames, organization_id: UUID, run_id: UUID, after: int) -> RunPlace:
        await gate.wait()
        return await place(frames, organization_id, run_id, after)

    monkeypatch.setattr(PostgresFrames, "place", late)
    async with world.replica() as replica:
        replica.models.replies = [telling(words)]
        run_id = await begin(replica, world.request(background=True))
        reading = asyncio.create_task(read(replica, run_id))
        async with asyncio.timeout(10):
            while replica.worker.drives(run_id) or not replica.models.requests:
                await asyncio.sleep(0.01)
        gate.set()
        events = await reading
    told = [event.part.text for event in events if isinstance(event, Delta) and isinstance(event.part, Text)]
    assert "".join(told) == "".join(words)
    assert rises(events)


# What is stored ------------------------------------------------------------------------------------------


async def test_a_stream_costs_at_most_twenty_rows_a_second(world: World) -> None:
    """However busy the machine is; unit/agent/streams has the rate of an idle one."""
    words = numbered(500)
    async with world.replica() as replica:
        replica.models.replies = [telling(words, pause=0.001)]
        began = time.monotonic()
        events = await read(replica, await begin(replica, world.request(background=True)))
        await until_stored(world, events)
        most = 20 * (time.monotonic() - began) + 2
    assert joined(events) == "".join(words)
    assert 2 <= await rows(world, end(events).run.id) <= most


async def test_foreground_runs_are_not_stored_unless_they_are_read_elsewhere(world: World) -> None:
    gate = asyncio.Event()
    async with world.replica() as here, world.replica() as elsewhere:
        here.models.replies = [gated(numbered(5), gate)]
        accepted, _ = await here.worker.accept(world.request(), stream=True)
        beside = Listener(here, accepted.run_id)
        await beside.hears()
        assert not here.worker._publisher._recorder.records(accepted.run_id)
        assert await rows(world, accepted.run_id) == 0
        reading = Listener(elsewhere, accepted.run_id)
        await until_rows(world, accepted.run_id, 1)
        await reading.hears()
        gate.set()
        events = await reading.end()
        await beside.end()
    assert [type(event) for event in events[:1]] == [Delta]
    assert joined(events) == "0 1 2 3 4 "


async def test_a_database_that_is_away_holds_no_run_up(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [telling(numbered(300), pause=0.001)]
        await world.pool.execute("ALTER TABLE agent.run_frames RENAME TO away")
        try:
            run_id = await begin(replica, world.request(background=True))
            query = "SELECT status = 'completed' FROM agent.runs WHERE id = $1"
            await answered(lambda: world.pool.fetchval(query, run_id))
        finally:
            await world.pool.execute("ALTER TABLE agent.away RENAME TO run_frames")
        # What was kept in memory is written when it is back.
        await until_rows(world, run_id, 1)
        assert joined(await read(replica, run_id)) == "".join(numbered(300))


async def test_old_hours_are_dropped_and_their_facts_stay(world: World) -> None:
    words, gate = numbered(40), asyncio.Event()
    async with world.replica(keep=timedelta(hours=2)) as replica:
        replica.models.replies = [gated(words, gate)]
        run_id = await begin(replica, world.request(background=True))
        reading = Listener(replica, run_id)
        await reading.hears()
        gate.set()
        live = await reading.end()
        whole = next(event for event in live if isinstance(event, MessagePiece))
        middle = whole.sequence - len(words) // 2
        frames = PostgresFrames(world.pool)
        hour = hour_of(await world.pool.fetchval("SELECT created_at FROM agent.runs WHERE id = $1", run_id))
        await until_stored(world, live)
        # Of runs before this one.
        await frames.drop_hours(hour)
        assert await frames.drop_hours(hour) == 0
        assert await rows(world, run_id) > 0
        assert await frames.drop_hours(hour + timedelta(hours=1)) == 1
        assert await frames.drop_hours(hour + timedelta(hours=1)) == 0
        assert await rows(world, run_id) == 0
        await world.pool.execute(
            "UPDATE agent.runs SET created_at = created_at - interval '4 hours' WHERE id = $1", run_id
        )
        assert joined(await read(replica, run_id)) == "".join(words)
        assert [type(event) for event in await read(replica, run_id, whole.sequence)] == [Ended]
        await replica.reader.check_kept(ORGANIZATION, run_id, whole.sequence)
        with pytest.raises(FailedPrecondition) as refused:
            await replica.reader.check_kept(ORGANIZATION, run_id, middle)
        assert refused.value.reason == "STREAM_EXPIRED"


async def test_partitions_are_made_ahead_by_everybody(world: World) -> None:
    one, other = PostgresFrames(world.pool), PostgresFrames(world.pool)
    far = hour_of(datetime.now(UTC)) + timedelta(days=3)
    hours = [far + timedelta(hours=number) for number in range(3)]
    await asyncio.gather(one.add_hours(hours), other.add_hours(hours))
    await one.add_hours(hours)
    names = [f"run_frames_{hour:%Y%m%d%H}" for hour in hours]
    found = await world.pool.fetchval(
        "SELECT count(*) FROM pg_inherits WHERE inhrelid = ANY($1::regclass[])", [f"agent.{name}" for name in names]
    )
    assert found == 3
    for name in names:
        await world.pool.execute(f"DROP TABLE agent.{name}")


async def test_erasing_a_run_erases_its_stream(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [telling(numbered(3))]
        run_id = await begin(replica, world.request(background=True))
        await read(replica, run_id)
        await until_rows(world, run_id, 1)
        await world.pool.execute("DELETE FROM agent.runs WHERE id = $1", run_id)
        assert await rows(world, run_id) == 0


# Who reads -----------------------------------------------------------------------------------------------


async def test_every_replica_reads_the_same_text(world: World) -> None:
    words, gate, told = numbered(8), asyncio.Event(), list[Event]()
    async with world.replica() as first, world.replica(capacity=0) as second:
        # It is shown as it comes, elsewhere too: each word waits until the one before was read there.
        first.models.replies = [paced(words, told, gate)]
        gate.set()
        run_id = await begin(second, world.request(background=True))
        here, elsewhere = Listener(first, run_id), Listener(second, run_id, told)
        streams = [await here.end(), await elsewhere.end(), await read(second, run_id)]
    for events in streams:
        assert joined(events) == "".join(words)
        assert rises(events)
    assert len([event for event in streams[1] if isinstance(event, Delta)]) == len(words)


@pytest.mark.parametrize("at", ["driver", "elsewhere"])
async def test_a_reader_may_go_on_after_any_event(world: World, at: str) -> None:
    words, gate = numbered(60), asyncio.Event()
    async with world.replica() as first, world.replica(capacity=0) as second:
        first.models.replies = [telling(words[:30], pause=0.004), gated(words, gate)]
        run_id = await begin(first, world.request(background=True, max_steps=3))
        live = await read(first, run_id)
        reader = first if at == "driver" else second
        await until_stored(world, live)
        sequences = [event.sequence for event in live]
        heard = Heard()
        for event, sequence in zip(live, sequences, strict=True):
            heard.take(event)
            before = heard.joined
            rest = await read(reader, run_id, sequence, wants_context=True)
            again = Heard()
            for each in rest:
                again.take(each, counts=each.sequence > sequence)
            assert before + again.joined == joined(live), sequence
            assert rises(rest[:-1])


async def test_a_reader_that_got_a_text_whole_gets_the_call_after_it(world: World) -> None:
    """The text takes its position after the deltas of the call, which this reader has not got."""

    async def tell(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "text", "I note that.")
        yield PartDelta(1, "call", '{"n": 1}', "call_0", "note")
        yield says(Text("I note that."), Call("", "call_0", "note", '{"n": 1}'), finish="tool_calls")

    async def note(call: Call) -> str:
        return "noted"

    async with world.replica() as first, world.replica(capacity=0) as second:
        first.tools.actions = {"note": note}
        first.models.replies = [tell, text("Done.")]
        run_id = await begin(first, world.request(background=True))
        events = await read(first, run_id)
        await until_stored(world, events)
        said, call = [event for event in await read(second, run_id) if isinstance(event, MessagePiece)][:2]
        rest = await read(second, run_id, said.sequence, wants_context=True)
    assert end(events).run.status is RunStatus.COMPLETED
    assert isinstance(call.parts[0], Call)
    assert rest[0] == call


async def test_readers_that_come_and_go_miss_nothing(world: World) -> None:
    words = numbered(150)

    async def wander(replicas: Sequence[Replica], run_id: UUID, patience: int) -> str:
        """Reads a few events here, the next ones there, until the end."""
        heard, seen, visits = Heard(), 0, 0
        while True:
            replica, visits = replicas[visits % len(replicas)], visits + 1
            follow, news = replica.reader.follow(ORGANIZATION, run_id, after=seen, wants_context=True), 0
            heard.said.clear()
            async with aclosing(follow) as events:
                async for event in events:
                    heard.take(event, counts=event.sequence > seen)
                    if isinstance(event, Ended):
                        return heard.joined
                    news += event.sequence > seen
                    seen = max(seen, event.sequence)
                    if news == patience:
                        break

    async with world.replica() as first, world.replica(capacity=0) as second:
        first.models.replies = [telling(words, pause=0.01)]
        run_id = await begin(first, world.request(background=True))
        async with asyncio.timeout(SECONDS):
            heard = await asyncio.gather(
                *(wander(replicas, run_id, patience) for patience in (1, 3, 7) for replicas in ((first,), (second,))),
                *(wander((first, second), run_id, patience) for patience in (1, 4)),
            )
    assert heard == ["".join(words)] * len(heard)


async def test_a_reader_that_comes_in_the_middle_gets_the_beginning_and_the_rest(world: World) -> None:
    words, gate = numbered(50), asyncio.Event()
    async with world.replica() as first, world.replica(capacity=0) as second:
        first.models.replies = [gated(words, gate)]
        run_id = await begin(first, world.request(background=True))
        await until_rows(world, run_id, 1)
        readings = [Listener(replica, run_id) for replica in (first, second)]
        for reading in readings:
            await reading.hears()
        gate.set()
        for reading in readings:
            events = await reading.end()
            assert isinstance(events[0], Delta)
            assert joined(events) == "".join(words)
            assert rises(events)


@pytest.mark.parametrize("accepting", ["first", "second"])
async def test_the_stream_goes_on_when_its_driver_is_lost(world: World, accepting: str) -> None:
    words, heard = numbered(80), list[Event]()
    async with world.replica() as lost:
        lost.models.replies = [paced(words[:4], heard, asyncio.Event())]
        async with world.replica(capacity=0) as reader:
            run_id = await begin(lost if accepting == "first" else reader, world.request(background=True))
            reading = Listener(reader, run_id, heard)
            await until(lambda: len(heard) == 4, SECONDS)
            await lost.die()
            async with world.replica(replies=[telling(words, pause=0.002)]) as heir:
                events = await reading.end()
                late = await read(heir, run_id)
    assert joined(events) == joined(late) == "".join(words)
    assert rises(events)
    void = [event for event in events if isinstance(event, Abandoned)]
    assert len(void) == 1
    assert events.index(void[0]) == 4
    assert end(events).run.fence == 2
    assert events[-1].sequence > 1_000_000


async def test_a_reader_on_a_lost_replica_goes_on_elsewhere(world: World) -> None:
    words = numbered(80)
    async with world.replica(capacity=0) as other, world.replica() as first:
        first.models.replies = [telling(words, pause=0.01)]
        run_id = await begin(first, world.request(background=True))
        heard, seen = Heard(), 0
        async with aclosing(other.reader.follow(ORGANIZATION, run_id)) as events:
            async for event in events:
                heard.take(event)
                seen = event.sequence
                if seen > 20:
                    break
        assert not other.reader._hub._present
        for event in await read(first, run_id, seen, wants_context=True):
            if event.sequence > seen:
                heard.take(event)
    assert heard.joined == "".join(words)


async def test_a_reader_that_stops_reading_is_cut_and_may_resume(world: World) -> None:
    words, is_read, gate = numbered(6_000), asyncio.Event(), asyncio.Event()

    async def tell(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "text", words[0])
        await is_read.wait()
        async for piece in gated(words[1:], gate)(request):
            yield piece if isinstance(piece, PartDelta) else text("".join(words))

    async with world.replica() as replica:
        replica.models.replies = [tell]
        run_id = await begin(replica, world.request(background=True))
        follow = replica.reader.follow(ORGANIZATION, run_id)
        heard, seen = Heard(), 0
        async with aclosing(follow) as events:
            first = await anext(events)
            heard.take(first)
            seen = first.sequence
            is_read.set()
            await until_rows(world, run_id, 1)
            [place] = replica.reader._hub._readers[run_id]
            await until(lambda: place._lagging, SECONDS)
            assert place._backlog.qsize() <= 2_001
            lagged = ""
            try:
                async for event in events:
                    heard.take(event)
                    seen = event.sequence
            except Unavailable as error:
                lagged = error.reason
        assert lagged == "READER_LAGS"
        gate.set()
        for event in await read(replica, run_id, seen, wants_context=True):
            if event.sequence > seen:
                heard.take(event)
    assert heard.joined == "".join(words)


# Notices -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("by_notice_alone")
async def test_readers_elsewhere_are_woken(world: World) -> None:
    gate = asyncio.Event()
    async with world.replica() as first, world.replica(capacity=0) as second:
        first.models.replies = [gated(["Hello"], gate)]
        run_id = await begin(first, world.request(background=True))
        reading = Listener(second, run_id)
        await until(lambda: first.is_watched(run_id))
        gate.set()
        assert joined(await reading.end()) == "Hello"


@pytest.mark.usefixtures("by_notice_alone")
async def test_a_cancel_reaches_the_driver_elsewhere(world: World) -> None:
    async with world.replica() as first, world.replica(capacity=0) as second:
        first.models.replies = [gated(["never"], asyncio.Event())]
        run_id = await begin(first, world.request(background=True))
        await until(lambda: first.models.requests)
        await second.worker.cancel(ORGANIZATION, [(run_id, world.agent_id)])
        assert end(await read(first, run_id)).run.status is RunStatus.CANCELLED


async def test_many_notices_go_in_few_messages(world: World) -> None:
    ids, heard = [uuid7() for _ in range(1_000)], set()
    one, other = PostgresNotices(world.url), PostgresNotices(world.url)
    other.on_notice = lambda notice, subject_id: heard.add((notice, subject_id))
    one.on_notice = lambda notice, subject_id: heard.add((notice, UUID(int=0)))
    tasks = [asyncio.create_task(each.run()) for each in (one, other)]
    await asyncio.gather(one.connected(), other.connected())
    for each in (*ids, *ids):
        one.tell("shown", each)
    # What a newer release tells is passed over.
    await world.pool.execute("SELECT pg_notify('loci_agent', 'zsomething,' || $1)", f"q{ids[0].hex}")
    await until(lambda: len(heard) >= 1_002)
    # Nobody hears himself; both hear a third.
    assert heard == {*(("shown", each) for each in ids), ("queued", ids[0]), ("queued", UUID(int=0))}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.usefixtures("by_notice_alone")
async def test_notices_come_again_after_a_lost_connection(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, connections = asyncio.Event(), list[object]()

    async def noted(url: str, **options: object) -> object:
        connections.append(await connect(url, **options))
        return connections[-1]

    monkeypatch.setattr(notices, "connect", noted)
    async with world.replica() as first, world.replica(capacity=0) as second:
        await world.pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        for replica in (first, second):
            # Whoever has something to tell finds out.
            replica.reader._notifier.tell("shown", uuid7())
        await until(lambda: len(connections) == 4)
        for replica in (first, second):
            await replica.lease_keeper._notifier.connected()  # type: ignore[attr-defined]
        first.models.replies = [gated(["Hello"], gate)]
        run_id = await begin(first, world.request(background=True))
        reading = Listener(second, run_id)
        await until(lambda: first.is_watched(run_id))
        gate.set()
        assert joined(await reading.end()) == "Hello"
