"""Who owns a run: claims that race, owners in no table, runs that nobody can load, turns held by ended runs."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from services.agent.adapters.leases import PostgresLeases
from services.agent.core.events import Ended
from services.agent.core.facts import RunStatus
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import OwnershipLost
from services.agent.driving.lease_keeper import MOST_OWNERS
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, end, text


async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
    """A model that never answers."""
    await asyncio.Event().wait()
    yield text("never")


async def test_of_two_claims_the_older_loses_nothing(world: World) -> None:
    """Two reclaims of one promoted run: the line's input must survive the one that comes too late."""
    leases = PostgresLeases(world.pool, uuid7())
    await leases.register()
    async with world.replica() as replica:
        replica.models.replies = [hang]
        first, second = world.request("one"), world.request("two")
        await replica.worker.accept(first, stream=False)
        await replica.worker.accept(second, stream=False)
        await replica.die()
    await world.pool.execute("DELETE FROM agent.run_queue")
    await world.pool.execute("UPDATE agent.runs SET status = 'failed' WHERE id = $1", first.run_id)
    await world.pool.execute("UPDATE agent.conversation_heads SET active_run_id = $1", second.run_id)
    owner = "UPDATE agent.runs SET status = 'running', worker_id = $2 WHERE id = $1"
    await world.pool.execute(owner, second.run_id, leases.worker_id)
    older = await leases.reclaim(ORGANIZATION, second.run_id)
    newer = await leases.reclaim(ORGANIZATION, second.run_id)
    assert older is not None
    assert newer is not None
    with pytest.raises(OwnershipLost):
        await leases.load(older)
    owned = await leases.load(newer)
    assert [message.role for message in owned.turn.history] == ["user", "user"]
    await leases.resign()


async def test_a_run_whose_owner_is_in_no_table_is_found(world: World) -> None:
    request = world.request()
    async with world.replica() as lost:
        lost.models.replies = [hang]
        await lost.worker.accept(request, stream=False)
        await lost.die()
    await world.pool.execute("DELETE FROM agent.run_queue")
    await world.pool.execute("UPDATE agent.runs SET worker_id = $2 WHERE id = $1", request.run_id, uuid7())
    async with world.replica() as replica:
        async with asyncio.timeout(SECONDS):
            follow = replica.reader.follow(ORGANIZATION, request.run_id)
            events = [event async for event in follow]
    assert end(events).run.status is RunStatus.COMPLETED


async def test_a_run_that_cannot_be_loaded_harms_no_other_and_ends(world: World) -> None:
    poisoned, sound = world.request(), None
    async with world.replica() as lost:
        lost.models.replies = [hang, hang]
        await lost.worker.accept(poisoned, stream=False)
        first_agent = world.agent_id
        await world.add_agent()
        sound = world.request()
        await lost.worker.accept(sound, stream=False)
        await lost.die()
    await world.pool.execute("UPDATE agent.facts SET body = '{}' WHERE run_id = $1", poisoned.run_id)
    await world.pool.execute("UPDATE agent.runs SET fence = $2 WHERE id = $1", poisoned.run_id, MOST_OWNERS - 1)
    async with world.replica() as replica:
        async with asyncio.timeout(SECONDS):
            events = [event async for event in replica.reader.follow(ORGANIZATION, sound.run_id)]
            assert end(events).run.status is RunStatus.COMPLETED
            ended = [event async for event in replica.reader.follow(ORGANIZATION, poisoned.run_id)]
        assert end(ended).run.status is RunStatus.FAILED
        # The next message to that agent works.
        world.agent_id = first_agent
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_a_turn_held_by_an_ended_run_is_given_on(world: World) -> None:
    async with world.replica() as replica:
        done = end(await replica.send(world.request())).run.id
        held = "UPDATE agent.conversation_heads SET active_run_id = $1 WHERE conversation_id = $2"
        await world.pool.execute(held, done, world.agent_id)
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_a_reader_that_has_seen_the_end_gets_it_again(world: World) -> None:
    async with world.replica() as replica:
        events = await replica.send(world.request())
        follow = replica.reader.follow(ORGANIZATION, end(events).run.id, after=events[-1].sequence)
        async with asyncio.timeout(SECONDS):
            again = [event async for event in follow]
    assert [type(event) for event in again] == [Ended]


async def test_a_reader_that_leaves_at_once_leaves_nothing(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [hang]
        request = world.request()
        accepted, subscription = await replica.worker.accept(request, stream=False)
        replica.reader.leave(accepted.run_id, subscription)
        hub = replica.reader._hub
        assert not hub._readers
        assert not hub.is_read(request.run_id)


async def test_a_withdrawn_request_was_never_made(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [hang, text("Here.")]
        first, second = world.request("one"), world.request("two", keys=("otids:2",), request_hash=b"two")
        await replica.worker.accept(first, stream=False)
        await replica.worker.accept(second, stream=False)
        await replica.worker.withdraw(ORGANIZATION, world.agent_id, second.run_id)
        await replica.worker.cancel(ORGANIZATION, [(first.run_id, world.agent_id)])
        again = world.request("two", keys=("otids:2",), request_hash=b"two", is_retry=True)
        assert end(await replica.send(again)).run.id == again.run_id
    assert [said for role, said in await world.history() if role == "user"] == ["one", "two"]


async def test_all_runs_of_a_conversation_are_cancelled(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [hang]
        requests = [world.request(str(number)) for number in range(4)]
        for request in requests:
            await replica.worker.accept(request, stream=False)
        runs = [(request.run_id, world.agent_id) for request in requests]
        assert len(await replica.worker.cancel(ORGANIZATION, runs)) == 4
        for request in requests:
            async with asyncio.timeout(SECONDS):
                events = [event async for event in replica.reader.follow(ORGANIZATION, request.run_id)]
            assert end(events).run.status is RunStatus.CANCELLED


async def test_a_keyed_retry_attaches_even_where_busy_is_refused(world: World) -> None:
    async with world.replica(on_busy="reject") as replica:
        replica.models.replies = [hang]
        first = world.request(keys=("otids:9",))
        await replica.worker.accept(first, stream=False)
        accepted, _ = await replica.worker.accept(world.request(keys=("otids:9",)), stream=False)
        assert (accepted.run_id, accepted.started) == (first.run_id, False)


async def test_reaping_waits_for_nobody(world: World) -> None:
    """A frozen owner holds the row of one of its runs: the other is queued, and that one at a later look."""
    leases = PostgresLeases(world.pool, uuid7())
    held, free = world.request(), None
    async with world.replica() as lost:
        lost.models.replies = [hang, hang]
        await lost.worker.accept(held, stream=False)
        await world.add_agent()
        free = world.request()
        await lost.worker.accept(free, stream=False)
        await lost.die()
        async with world.pool.acquire() as frozen:
            transaction = frozen.transaction()
            await transaction.start()
            await frozen.execute("SELECT FROM agent.runs WHERE id = $1 FOR UPDATE", held.run_id)
            async with asyncio.timeout(SECONDS):
                assert await leases.reap() == 1
                assert await leases.reap() == 0
            assert await _owners(world) == {held.run_id: lost.journal.worker_id, free.run_id: None}
            await transaction.rollback()
        assert await leases.reap() == 1
        assert await _owners(world) == {held.run_id: None, free.run_id: None}
        assert await world.pool.fetchval("SELECT count(*) FROM agent.workers") == 0


async def _owners(world: World) -> dict[object, object]:
    rows = await world.pool.fetch("SELECT id, worker_id FROM agent.runs WHERE status = 'running'")
    return {row["id"]: row["worker_id"] for row in rows}


async def test_take_overs_count_since_the_last_fact(world: World) -> None:
    """A long run outlives many replicas, as long as it gets on."""
    request = world.request()
    async with world.replica() as lost:
        lost.models.replies = [hang]
        await lost.worker.accept(request, stream=False)
        await lost.die()
    long_life = MOST_OWNERS * 5
    await world.pool.execute("UPDATE agent.facts SET fence = $2 WHERE run_id = $1", request.run_id, long_life)
    await world.pool.execute("UPDATE agent.runs SET fence = $2 WHERE id = $1", request.run_id, long_life)
    async with world.replica() as replica, asyncio.timeout(SECONDS):
        events = [event async for event in replica.reader.follow(ORGANIZATION, request.run_id)]
    assert end(events).run.status is RunStatus.COMPLETED
