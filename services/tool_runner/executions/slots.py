"""How many calls run at the same time; the others wait in line.

Calls that work on this machine are counted together. Those that only wait for a server of somebody else are counted
for that server and for their tenant, so that a slow one keeps nobody else waiting.

Each count is of the calls that equally many runs and calls wait for: a tool that has another one called holds its place
meanwhile, and the other must not stand behind it.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from services.common.context import RUN_ROLE, current
from services.tool_runner.core.ports import Place
from services.tool_runner.executions.running_call import Execution

MOST_OF_SERVER = 64
MOST_OF_TENANT = 256


@dataclass(slots=True)
class _Line:
    free: asyncio.Semaphore
    users: int = 0


class Slots:
    """`at_once`: of the calls that work on this machine."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._lines: dict[Hashable, _Line] = {}

    @asynccontextmanager
    async def hold(self, execution: Execution, organization_id: UUID, place: Place) -> AsyncIterator[None]:
        """Waits for a slot, which is the call's until the end of the block. Raises what interrupts the execution."""
        depth = _waiting_for_it()
        lines: list[tuple[Hashable, int]] = [((depth,), self._at_once)]
        if place.server:
            # The server's first: who waits for a slow server takes nothing from the tenant's other calls.
            lines = [
                ((depth, organization_id, place.server), MOST_OF_SERVER),
                ((depth, organization_id), MOST_OF_TENANT),
            ]
        async with AsyncExitStack() as held:
            for key, size in lines:
                await held.enter_async_context(self._hold(execution, key, size))
            yield

    @asynccontextmanager
    async def _hold(self, execution: Execution, key: Hashable, size: int) -> AsyncIterator[None]:
        line = self._lines.setdefault(key, _Line(asyncio.Semaphore(size)))
        line.users += 1
        try:
            await execution.interruptible(line.free.acquire())
            try:
                yield
            finally:
                line.free.release()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[key]


def _waiting_for_it() -> int:
    """Returns how many runs and calls wait for the call."""
    caller = current()
    return len(caller.ancestors) + (caller.role == RUN_ROLE)
