"""Forgetting the results of tool calls that nobody can repeat any more."""

import asyncio
import logging
import random
from datetime import timedelta

from services.memory.core.ports.agents import CallStore

logger = logging.getLogger(__name__)

# A call is repeated within its run, whose deadline is days away at most.
RETENTION = timedelta(days=30)
_PAUSE_SECONDS = 3_600
_AT_ONCE = 1_000


async def forget_old_calls(calls: CallStore, *, age: timedelta = RETENTION) -> None:
    """Deletes what is older, in small portions. Replicas may do this at the same time."""
    while await calls.forget(age, _AT_ONCE) == _AT_ONCE:
        pass


async def forget_forever(calls: CallStore) -> None:
    """Does so about once an hour; a database that is away is met again in the next."""
    while True:
        await asyncio.sleep(_PAUSE_SECONDS * random.uniform(0.5, 1.5))
        try:
            await forget_old_calls(calls)
        except Exception:  # a supervisor: whatever it was, the next hour is another chance
            logger.exception("old tool results were not forgotten")
