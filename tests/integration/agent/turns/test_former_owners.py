"""Runs that are taken over: what their former owner may be doing is refused or stopped, and cancels are heard."""

import asyncio
from contextlib import aclosing

import pytest

from services.agent.core.events import Event
from services.agent.core.facts import RunStatus
from services.agent.core.messages import Call
from services.agent.core.ports_journal import Commit, CommitResult, OwnedRun, TurnRequest
from services.agent.core.turn import call_key
from services.agent.driving import worker
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, answered, calls, end, text

LONG = 600.0


async def follow(replica: Replica, request: TurnRequest) -> list[Event]:
    events = replica.reader.follow(ORGANIZATION, request.run_id)
    async with asyncio.timeout(SECONDS), aclosing(events):
        return [event async for event in events]


async def dies_at_a_call(world: World, replica: Replica) -> TurnRequest:
    """A run whose owner is lost while a tool of it runs."""
    called, request = asyncio.Event(), world.request()

    async def hang(call: Call) -> str:
        called.set()
        await asyncio.Event().wait()
        return "never"

    replica.tools.actions = {"wait": hang}
    replica.models.replies = [calls("wait")]
    await replica.worker.accept(request, stream=False)
    await called.wait()
    await replica.die()
    return request


async def wait(call: Call) -> str:
    return "waited"


async def test_whoever_takes_a_run_over_amid_calls_has_its_former_owner_refused(world: World) -> None:
    async with world.replica() as lost:
        request = await dies_at_a_call(world, lost)
        assert (lost.tools.fences, lost.memory.fences) == ([], [])
    async with world.replica(replies=[text("Done.")]) as heir:
        heir.tools.actions = {"wait": wait}
        assert end(await follow(heir, request)).run.status is RunStatus.COMPLETED
        assert heir.tools.fences == heir.memory.fences == [2]
        # A run of its own tells nobody anything.
        heir.models.replies = [calls("wait"), text("Done.")]
        assert end(await heir.send(world.request())).run.status is RunStatus.COMPLETED
        assert heir.tools.fences == heir.memory.fences == [2]


async def test_calls_of_a_run_that_is_cancelled_while_nobody_drives_it_are_cancelled(world: World) -> None:
    async with world.replica() as lost:
        request = await dies_at_a_call(world, lost)
        assert await lost.journal.cancel(ORGANIZATION, [(request.run_id, world.agent_id)]) == [request.run_id]
    async with world.replica() as heir:
        heir.tools.actions = {"wait": wait}
        assert end(await follow(heir, request)).run.status is RunStatus.CANCELLED
        assert (heir.tools.cancelled, heir.tools.fences) == ([call_key(request.run_id, 1, 0)], [2])


async def test_a_run_that_was_dropped_hears_its_cancel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(worker, name, LONG)
    request = world.request()
    async with world.replica() as replica:
        store, away = replica.journal.commit, [ConnectionError("the database is away")]

        async def fails_once(owned: OwnedRun, commit: Commit) -> CommitResult:
            if away:
                raise away.pop()
            return await store(owned, commit)

        monkeypatch.setattr(replica.journal, "commit", fails_once)
        await replica.worker.accept(request, stream=False)
        await answered(lambda: _is_dropped(replica, request))
        assert replica.worker.drives(request.run_id)
        await replica.worker.cancel(ORGANIZATION, [(request.run_id, world.agent_id)])
        assert end(await follow(replica, request)).run.status is RunStatus.CANCELLED


async def _is_dropped(replica: Replica, request: TurnRequest) -> bool:
    return request.run_id in replica.worker._dropped and replica.worker.load == 0
