"""Streams to callers from outside: whoever was let in is looked at again while they last."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from services.common.errors import LociError, PermissionDenied, Unauthenticated

logger = logging.getLogger(__name__)

REAUTH_SECONDS = 5.0


@asynccontextmanager
async def reauthenticating(ask: Callable[[], Awaitable[object]], seconds: float) -> AsyncIterator[None]:
    """Calls `ask` every so many seconds while the block runs, and ends the block with its Unauthenticated or
    PermissionDenied.

    Other errors of asking end nothing.
    """
    refusals: list[LociError] = []
    timeout = asyncio.timeout(None)

    async def look() -> None:
        while not refusals:
            await asyncio.sleep(seconds)
            try:
                await ask()
            except (Unauthenticated, PermissionDenied) as error:
                refusals.append(error)
                timeout.reschedule(asyncio.get_running_loop().time())
            except LociError as error:
                logger.warning("whether the caller of a stream is still let in cannot be told now: %s", error.message)

    looking = asyncio.ensure_future(look())
    try:
        async with timeout:
            yield
    except TimeoutError:
        if not timeout.expired():
            raise
        raise refusals[0] from None
    finally:
        looking.cancel()
