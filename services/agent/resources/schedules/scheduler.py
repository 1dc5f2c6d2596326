"""Sends what is due. Every replica looks; whoever finds something first has it, and the others pass it by."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from services.agent.resources.schedules.ports import DueSchedules

# Others may plan something meanwhile; and another replica may be sending what is due.
LONGEST_SLEEP, SHORTEST_SLEEP = 1.0, 0.05
# Sent one after the other, and at the same time.
AT_ONCE, IN_PARALLEL = 16, 4

_log = logging.getLogger(__name__)


class Scheduler:
    """Sends what is due, in the background.

    succeed: told of each run that has the turn, as `Worker.on_successor`; run_timeout: the longest run, seconds.
    """

    def __init__(
        self, due: DueSchedules, succeed: Callable[[UUID, UUID, UUID | None], None], *, run_timeout: float
    ) -> None:
        self._due = due
        self._succeed = succeed
        self._run_timeout = run_timeout
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Tells that something was planned: it looks now."""
        self._wake.set()

    async def run(self) -> None:
        """Sends until cancelled."""
        while True:
            self._wake.clear()
            sleep = LONGEST_SLEEP
            try:
                seconds = await self._due.wait_seconds()
                if seconds is not None and seconds <= 0 and await self.send_due():
                    continue
                if seconds is not None:
                    sleep = max(SHORTEST_SLEEP, min(seconds, LONGEST_SLEEP))
            except Exception:  # noqa: BLE001
                # The supervisor of schedules: a database that is away comes back, and what is due waits there.
                _log.exception("schedules could not be looked at")
            try:
                async with asyncio.timeout(sleep):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def send_due(self) -> int:
        """Sends what is due now, a handful at most; how many that were."""
        async with asyncio.TaskGroup() as group:
            senders = [group.create_task(self._send()) for _ in range(IN_PARALLEL)]
        return sum(sender.result() for sender in senders)

    async def _send(self) -> int:
        for count in range(AT_ONCE):
            sent = await self._due.send_next(self._run_timeout)
            if sent is None:
                return count
            if sent.successor is not None:
                self._succeed(sent.organization_id, *sent.successor)
        return AT_ONCE
