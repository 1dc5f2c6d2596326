"""Waits for what happens in its own time: one loop with a deadline, for threads and for coroutines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    seconds: float = 20.0,
    *,
    pause: float = 0.05,
    problem: Callable[[], str] = lambda: "",
) -> T:
    """Returns the first true answer of `condition`. Raises AssertionError with `problem()` after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, problem() or f"not in {seconds:g} seconds"
        time.sleep(pause)
    return value


async def until(condition: Callable[[], T | None], seconds: float = 20.0, *, pause: float = 0.02) -> T:
    """The same beside other coroutines; raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (value := condition()):
            await asyncio.sleep(pause)
    return value
