"""Calls go first: what can wait, waits until none has begun or ended for a moment."""

import asyncio
from collections.abc import Callable

_MOMENT_SECONDS = 0.05
_MOST_SECONDS = 1.0
_LOOK_SECONDS = 0.02


class QuietPeriod:
    """When calls came and went."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def disturb(self) -> None:
        """Notes that a call begins or ends now."""
        self._last = asyncio.get_running_loop().time()

    async def wait(self, while_: Callable[[], bool]) -> None:
        """Waits until it is quiet, or `while_` no longer holds; never much longer than a second."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _MOST_SECONDS
        # Looked at, not told: a call must not wake those that wait for its end.
        while while_() and loop.time() < min(until, self._last + _MOMENT_SECONDS):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
