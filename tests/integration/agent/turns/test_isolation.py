"""A run whose owners were lost again and again is driven elsewhere alone, and takes nobody with it."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.agent.adapters.leases import PostgresLeases
from services.agent.core.events import Event
from services.agent.core.facts import RunStatus
from services.agent.core.ports_journal import OwnedRun, TurnRequest
from services.agent.driving import worker
from services.agent.driving.isolation import SUSPECT_CLAIMS, ChildProcesses, IsolationFailed, run_from_line, run_to_line
from tests.integration.agent.turns.test_lease_keeper import hang
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, end


async def follow(replica: Replica, request: TurnRequest) -> list[Event]:
    events = replica.reader.follow(ORGANIZATION, request.run_id)
    async with asyncio.timeout(SECONDS), aclosing(events):
        return [event async for event in events]


class Elsewhere:
    """Drives runs by a replica that takes none by itself; the first `deaths` times it dies with them."""

    def __init__(self, replica: Replica, deaths: int = 0) -> None:
        self.driven: list[UUID] = []
        self._replica = replica
        self._deaths = deaths

    async def drive(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        self.driven.append(run_id)
        if len(self.driven) <= self._deaths:
            raise IsolationFailed("it was killed")
        await self._replica.lease_keeper.drive_one(organization_id, run_id, fence)


async def lost_often(world: World, claims: int) -> TurnRequest:
    """A run that its next owner claims for the so manieth time without a new fact."""
    request = world.request()
    async with world.replica() as lost:
        lost.models.replies = [hang]
        await lost.worker.accept(request, stream=False)
        await lost.die()
    await world.pool.execute("UPDATE agent.runs SET fence = $2 WHERE id = $1", request.run_id, claims)
    return request


async def test_it_is_driven_alone_and_ends_as_any_other(world: World) -> None:
    suspect = await lost_often(world, SUSPECT_CLAIMS)
    async with world.replica(capacity=0) as alone:
        elsewhere = Elsewhere(alone)
        async with world.replica(isolation=elsewhere) as replica:
            assert end(await follow(replica, suspect)).run.status is RunStatus.COMPLETED
            assert (elsewhere.driven, len(alone.models.requests), replica.models.requests) == ([suspect.run_id], 1, [])


async def test_others_stay_with_their_replica(world: World) -> None:
    unlucky = await lost_often(world, SUSPECT_CLAIMS - 1)
    async with world.replica(capacity=0) as alone:
        elsewhere = Elsewhere(alone)
        async with world.replica(isolation=elsewhere) as replica:
            assert end(await follow(replica, unlucky)).run.status is RunStatus.COMPLETED
            assert (elsewhere.driven, len(replica.models.requests)) == ([], 1)


async def test_when_its_process_dies_it_is_tried_again_and_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", 0.01)
    suspect = await lost_often(world, SUSPECT_CLAIMS)
    async with world.replica(capacity=0) as alone:
        elsewhere = Elsewhere(alone, deaths=2)
        async with world.replica(isolation=elsewhere) as replica:
            assert end(await follow(replica, suspect)).run.status is RunStatus.COMPLETED
            assert elsewhere.driven == [suspect.run_id] * 3
            await world.add_agent()
            assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_what_a_replica_dropped_and_survived_is_no_suspect(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", 0.01)
    request = await lost_often(world, 1)
    load, away = PostgresLeases.load, [ConnectionError("the database is away")] * 5

    async def fails_first(leases: PostgresLeases, row: Mapping[str, Any]) -> OwnedRun:
        if away:
            raise away.pop()
        return await load(leases, row)

    monkeypatch.setattr(PostgresLeases, "load", fails_first)
    async with world.replica(capacity=0) as alone:
        elsewhere = Elsewhere(alone)
        async with world.replica(isolation=elsewhere) as replica:
            assert end(await follow(replica, request)).run.status is RunStatus.COMPLETED
            assert (elsewhere.driven, away) == ([], [])


# The processes ----------------------------------------------------------------------------------------------


async def test_a_process_is_told_its_run_and_ends_with_whoever_began_it() -> None:
    told = (uuid4(), uuid4(), 7)
    assert run_from_line(run_to_line(*told)) == told
    reads_all = "import sys; sys.stdin.read()"
    driving = asyncio.create_task(ChildProcesses((sys.executable, "-c", reads_all)).drive(*told))
    children = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    async with asyncio.timeout(SECONDS):
        while not (begun := _children(children)):
            await asyncio.sleep(0.01)
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
    assert not set(begun) & set(_children(children))


async def test_a_process_that_does_not_end_well_is_told() -> None:
    with pytest.raises(IsolationFailed, match="status 3"):
        await ChildProcesses((sys.executable, "-c", "raise SystemExit(3)")).drive(uuid4(), uuid4(), 1)


def _children(path: str) -> list[str]:
    with open(path) as listed:
        return [pid for pid in listed.read().split() if _runs_python_c(pid)]


def _runs_python_c(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return b"sys.stdin.read()" in line.read()
    except OSError:
        return False
