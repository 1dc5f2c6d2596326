"""Calls from outside: whoever was let in is looked at again while they last."""

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
    timeout = asyncio.timeout(None)
    looks = _Looks(ask, seconds, timeout)
    try:
        async with timeout:
            yield
    except TimeoutError:
        if looks.refusal is None:
            raise
        raise looks.refusal from None
    finally:
        looks.end()


class _Looks:
    def __init__(self, ask: Callable[[], Awaitable[object]], seconds: float, timeout: asyncio.Timeout) -> None:
        self.refusal: LociError | None = None
        self._ask = ask
        self._seconds = seconds
        self._timeout = timeout
        self._asking: asyncio.Task[None] | None = None
        self._wait()

    def end(self) -> None:
        self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _wait(self) -> None:
        # No task: hardly any call takes so long.
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)

    def _begin(self) -> None:
        self._asking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        try:
            await self._ask()
        except (Unauthenticated, PermissionDenied) as error:
            self.refusal = error
            self._timeout.reschedule(asyncio.get_running_loop().time())
            return
        except LociError as error:
            logger.warning("whether a caller is still let in cannot be told now: %s", error.message)
        self._wait()
