"""Retries of a model call: only before its first event, only where the error may pass, never past the
deadline.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from services.llm_gateway.core.chat import Event
from services.llm_gateway.core.errors import LlmError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `retries` further tries; pauses in seconds, doubling from `first`, drawn at random from half
    up.

    A provider that asks for a longer pause than `longest_wait` is not waited for: the caller hears it at
    once.
    """

    retries: int = 2
    first: float = 0.5
    longest: float = 8.0
    longest_wait: float = 30.0

    def pause(self, error: LlmError, tries: int, remaining: float | None) -> float | None:
        """Returns the seconds to wait before the next try after `tries` of them, or None to give up."""
        if not error.retryable or tries > self.retries:
            return None
        pause = min(self.first * 2 ** (tries - 1), self.longest) * random.uniform(0.5, 1.0)
        if error.retry_after is not None:
            if error.retry_after > self.longest_wait:
                return None
            # Not all that wait for the same moment come at once.
            pause = max(pause, error.retry_after + random.uniform(0.0, min(1.0, error.retry_after / 10)))
        return None if remaining is not None and pause >= remaining else pause


class Clock:
    """The time left for a call; `deadline` is on time.monotonic(), None for no end."""

    def __init__(self, remaining: float | None) -> None:
        self._deadline = None if remaining is None else time.monotonic() + remaining

    def remaining(self) -> float | None:
        """Returns the seconds left, or None."""
        return None if self._deadline is None else self._deadline - time.monotonic()


async def retry_events(
    start: Callable[[], AsyncGenerator[Event, None]], policy: RetryPolicy, clock: Clock
) -> AsyncGenerator[Event, None]:
    """Yields the events of `start()`, called again while it fails before its first event and `policy` allows it.
    Closing it ends a pause, too: nobody is called for a caller who is gone.
    """
    tries = 0
    while True:
        tries += 1
        delivered = False
        try:
            async with aclosing(start()) as events:
                async for event in events:
                    delivered = True
                    yield event
                return
        except LlmError as error:
            pause = None if delivered else policy.pause(error, tries, clock.remaining())
            if pause is None:
                raise
        await asyncio.sleep(pause)


async def retry(call: Callable[[], Awaitable[T]], policy: RetryPolicy, clock: Clock) -> T:
    """Returns the result of `call()`, with the same rules."""
    tries = 0
    while True:
        tries += 1
        try:
            return await call()
        except LlmError as error:
            pause = policy.pause(error, tries, clock.remaining())
            if pause is None:
                raise
        await asyncio.sleep(pause)
