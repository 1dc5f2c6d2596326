"""The gate of one provider: so many calls run at once, the others wait in line.

Each provider has a gate of its own, so that a slow one fills its own alone. A call that finds it full waits in line;
tenants take turns, so that one with a thousand calls delays another's first by one. A call that is cancelled or whose
deadline passes leaves the line.
"""

import asyncio
from collections import OrderedDict, deque
from uuid import UUID

from services.llm_gateway.core.errors import LlmQueueFull, LlmTimeout

# Before the caller's own deadline, so that it hears what it waited for.
_EARLY_SECONDS = 0.05
Line = deque[asyncio.Future[None]]


class Gate:
    """`limit` calls at once, `queue` more in line."""

    def __init__(self, provider: str, limit: int, queue: int) -> None:
        self.running = 0
        self.waiting = 0
        self._provider = provider
        self._limit = limit
        self._queue = queue
        self._lines: OrderedDict[UUID, Line] = OrderedDict()

    def widen(self, limit: int) -> None:
        """Sets a new limit; calls that run go on."""
        self._limit = limit
        while self.running < limit and self._admit_next():
            self.running += 1

    async def enter(self, organization_id: UUID, handle: str, remaining: float | None) -> None:
        """Returns when the call may go; `leave` must follow. Raises LlmQueueFull, and LlmTimeout after `remaining`
        seconds.
        """
        if self.running < self._limit:
            self.running += 1
            return
        if self.waiting >= self._queue:
            raise LlmQueueFull(
                f"{self._provider} has {self.running} calls at once and {self.waiting} in line, which is all it may "
                "(LOCI_LLM_CONCURRENCY, LOCI_LLM_QUEUE). Try again later.",
                provider=self._provider,
                handle=handle,
            )
        place = self._line_up(organization_id)
        try:
            async with asyncio.timeout(None if remaining is None else remaining - _EARLY_SECONDS):
                await place
        except TimeoutError:
            self._withdraw(organization_id, place)
            raise LlmTimeout(
                f"The call waited in line for {self._provider} until its deadline: {self.running} others run, "
                "which is all it may at once (LOCI_LLM_CONCURRENCY). Try again later.",
                provider=self._provider,
                handle=handle,
            ) from None
        except asyncio.CancelledError:
            self._withdraw(organization_id, place)
            raise

    def leave(self) -> None:
        """Gives the place of a call that has ended to the next in line."""
        # After the limit was lowered nobody follows until it holds.
        if self.running > self._limit or not self._admit_next():
            self.running -= 1

    def _line_up(self, organization_id: UUID) -> asyncio.Future[None]:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(organization_id, deque()).append(place)
        self.waiting += 1
        return place

    def _admit_next(self) -> bool:
        while self._lines:
            organization_id, line = next(iter(self._lines.items()))
            place = line.popleft()
            self.waiting -= 1
            if line:
                self._lines.move_to_end(organization_id)
            else:
                del self._lines[organization_id]
            if not place.done():
                place.set_result(None)
                return True
        return False

    def _withdraw(self, organization_id: UUID, place: asyncio.Future[None]) -> None:
        line = self._lines.get(organization_id)
        if line is not None and place in line:
            line.remove(place)
            self.waiting -= 1
            if not line:
                del self._lines[organization_id]
        elif not place.cancelled():
            # It was let in at the very moment.
            self.leave()
