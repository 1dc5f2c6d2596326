"""A limit on what a server may make this process read: what comes faster waits, and with it the server."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from services.tool_runner.mcp.protocol.errors import Kind, McpProblem

# A message is a line or three, and costs about 100 us to read.
_LINES_PER_SECOND = 1_000
_LINES_AT_ONCE = 10_000
_BYTES_PER_LINE = 4 * 1024


class Throttle:
    """Counts the lines and bytes of one stream; it may bring `most` bytes in all. `now`, `sleep`: its clock."""

    def __init__(
        self,
        most: int,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._most = most
        self._left = most
        self._now, self._sleep = now, sleep
        self._credit = float(_LINES_AT_ONCE)
        self._at = now()

    async def wait_for_bytes(self, data: bytes) -> None:
        """Waits until so much may come. Raises McpProblem once it is more than the stream may bring."""
        self._left -= len(data)
        if self._left < 0:
            raise too_much(self._most)
        now = self._now()
        self._credit = min(self._credit + (now - self._at) * _LINES_PER_SECOND, _LINES_AT_ONCE)
        self._at = now
        self._credit -= data.count(b"\n") + len(data) / _BYTES_PER_LINE
        if self._credit < 0:
            await self._sleep(-self._credit / _LINES_PER_SECOND)


def too_much(most: int) -> McpProblem:
    """Returns the problem of a server that sends more than is read."""
    size = f"{most / 1024 / 1024:.3g} MiB"
    return McpProblem(Kind.FAILED, f"the MCP server sent more than {size}, which is not read", arrived=True)
