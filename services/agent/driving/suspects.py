"""Runs of a replica that may have killed their owners: each waits for a process of its own, or is driven in it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from services.agent.core.ports_journal import Leases
from services.agent.driving.isolation import Isolation
from services.agent.driving.worker import Worker

# Claims since the last fact from which on a run is a suspect.
SUSPECT_CLAIMS = 3
# A run ends at its time limit by itself; this is for one whose process did not begin, or does not end.
SPARE_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Suspects:
    """Has suspects driven alone. `isolation`: None where no run is one."""

    def __init__(self, isolation: Isolation | None, leases: Leases, worker: Worker) -> None:
        self._isolation = isolation
        self._leases = leases
        self._worker = worker
        self._tasks: dict[UUID, asyncio.Task[None]] = {}

    def __contains__(self, run_id: UUID) -> bool:
        return run_id in self._tasks

    async def take(self, row: Mapping[str, Any], claims: int) -> bool:
        """Returns whether a run is a suspect; then it is driven alone. `claims`: since its last fact."""
        if self._isolation is None or not await self._is_suspect(row, claims):
            return False
        # Before anybody awaits: the next beat must not take it for a run that nobody drives.
        task = self._tasks[row["id"]] = asyncio.create_task(self._drive(self._isolation, row))
        task.add_done_callback(lambda _: self._tasks.pop(row["id"], None))
        return True

    def let_go(self, run_id: UUID) -> None:
        """Has a suspect driven here that still waits for its process; one that does not wait has another owner."""
        if run_id in self._tasks:
            self._tasks[run_id].cancel()

    async def stop(self) -> None:
        """Ends the processes; what they drive is handed over."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _is_suspect(self, row: Mapping[str, Any], claims: int) -> bool:
        """Returns whether a run may have killed its owners, and may do so again: not one that is only to be ended, nor
        one that waits for others, which might need the place that it would take.
        """
        lost = claims - self._worker.drops(row["id"])
        if lost < SUSPECT_CLAIMS or row["cancel_requested"] or row["seconds_left"] <= 0:
            return False
        return not await self._leases.waits_for_runs(row)

    async def _drive(self, isolation: Isolation, row: Mapping[str, Any]) -> None:
        _log.warning("run %s lost its owners %d times and is driven alone", row["id"], row["claims"])
        try:
            await self._worker.let_go(row["id"])
            async with asyncio.timeout(row["seconds_left"] + SPARE_SECONDS):
                await isolation.drive(row["organization_id"], row["id"], row["fence"])
        except Exception as error:  # noqa: BLE001
            # The supervisor of its process: whatever became of that, it is tried again after a pause.
            _log.warning("run %s is not driven alone any more: %s", row["id"], error)
            self._worker.drop(row["id"], error)
