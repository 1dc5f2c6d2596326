"""When a replica judges others, and when it says that its own lease is lost: by a clock of the test's own."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from services.agent.driving.lease_keeper import LEASE_SECONDS, LeaseKeeper
from tests.virtual_time import run


class _Leases:
    """A database that is away between two times."""

    def __init__(self, away: tuple[float, float]) -> None:
        self.worker_id = uuid4()
        self.away = away
        self.reaped: list[float] = []

    async def register(self) -> None:
        return None

    async def tick(self) -> Mapping[str, Any]:
        begin, end = self.away
        if begin <= _now() < end:
            await asyncio.Event().wait()
        return {"alive": True, "lost": True}

    async def reap(self) -> int:
        self.reaped.append(_now())
        return 0

    async def repair(self) -> None:
        return None


class _Idle:
    """A worker and a notifier that have nothing to do."""

    load = 0

    async def stop(self) -> None:
        return None


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _watched(away: tuple[float, float], seconds: float) -> tuple[list[float], list[tuple[float, bool]]]:
    """When it reaped, and what it said of its lease."""
    leases: Any = _Leases(away)
    idle: Any = _Idle()
    keeper = LeaseKeeper(leases, idle, idle)
    told: list[tuple[float, bool]] = []

    async def on_lease(holds: bool) -> None:
        told.append((_now(), holds))

    keeper.on_lease = on_lease
    await keeper.start()
    await asyncio.sleep(seconds)
    for task in list(keeper._tasks):
        task.cancel()
    return leases.reaped, told


def test_who_was_away_for_a_lease_judges_nobody_for_another() -> None:
    reaped, told = run(_watched((2.0, 6.0), 12.0))
    assert [moment for moment in reaped if moment < 2.0]
    first_after = min(moment for moment in reaped if moment >= 6.0)
    # It beats again soon after 6, and the others have a lease from then on to do so, too.
    assert first_after >= 6.0 + LEASE_SECONDS
    assert [holds for _, holds in told] == [False, True]
    (lost, _), (again, _) = told
    assert 2.0 + LEASE_SECONDS <= lost <= 6.0 <= again <= 8.0


def test_a_short_pause_changes_nothing() -> None:
    reaped, told = run(_watched((2.0, 3.5), 8.0))
    assert told == []
    assert [moment for moment in reaped if 3.5 <= moment <= 3.5 + LEASE_SECONDS]
