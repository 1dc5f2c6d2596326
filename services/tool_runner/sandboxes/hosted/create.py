"""Making what costs money: it is never lost between its maker and whoever waited for it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def create_or_undo(making: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """Returns what is made; where whoever waits is cancelled, it is waited for and undone first."""
    task = asyncio.create_task(making)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and not task.exception():
            await undo(task.result())
        raise
