"""Waiting for something unless something else happens first, in the task that waits: `asyncio.wait` costs two more."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """The other thing happened first."""


async def run_unless(stop: "asyncio.Future[Any]", work: Awaitable[T]) -> T:
    """Returns what `work` gives.

    When `stop` is done before, `work` is cancelled, and Stopped is raised once it has ended.
    """
    loop, waiting = asyncio.get_running_loop(), True
    try:
        async with asyncio.timeout(None) as scope:

            def end(_: object) -> None:
                if waiting:
                    scope.reschedule(loop.time())

            stop.add_done_callback(end)
            try:
                return await work
            finally:
                waiting = False
                stop.remove_done_callback(end)
    except TimeoutError:
        if scope.expired():
            raise Interrupted from None
        raise
