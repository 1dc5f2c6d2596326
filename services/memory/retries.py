"""Repeats what lost against a change of others."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def retry(
    act: Callable[[], Awaitable[T]], conflict: type[Exception], *, attempts: int, longest_pause: float = 0.0
) -> T:
    """Awaits `act`, which reads, changes and commits, until it raises no `conflict`; raises the last one."""
    for attempt in range(attempts - 1):
        try:
            return await act()
        except conflict:
            await asyncio.sleep(random.uniform(0, min(longest_pause, 0.001 * attempt)))
    return await act()
