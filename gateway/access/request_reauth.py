"""Requests that last: whoever was let in is looked at again meanwhile, and a key that was revoked ends them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access.socket_reauth import LET_IN_NO_MORE
from services.common.errors import LociError

logger = logging.getLogger(__name__)

# Where the scope says why its answer ends before its time.
ENDED = "loci.ended"


class RequestReauth:
    """One request. While it lasts, `ask` is called every so many seconds; it raises a LociError for a caller who is let
    in no more. Then the application is cancelled with the error in its scope.

    What asking fails of otherwise ends nothing.
    """

    def __init__(self, ask: Callable[[], Awaitable[object]], seconds: float, scope: Scope, send: Send) -> None:
        self._ask = ask
        self._seconds = seconds
        self._scope = scope
        self._send = send
        self._has_begun = False
        self._timeout = asyncio.timeout(None)
        self._asking: asyncio.Task[None] | None = None

    async def serve(self, app: ASGIApp, receive: Receive) -> None:
        """Calls the application. Raises the error where it had not begun to answer."""
        self._wait()
        try:
            async with self._timeout:
                await app(self._scope, receive, self._sent)
        except TimeoutError:
            if not self._timeout.expired():
                raise
            if not self._has_begun:
                raise self._scope[ENDED] from None
        finally:
            self._timer.cancel()
            if self._asking is not None:
                self._asking.cancel()

    async def _sent(self, message: Message) -> None:
        self._has_begun = True
        await self._send(message)

    def _wait(self) -> None:
        # No task: hardly any request takes so long.
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)

    def _begin(self) -> None:
        self._asking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        try:
            await self._ask()
        except LociError as error:
            if error.reason in LET_IN_NO_MORE:
                self._scope[ENDED] = error
                self._timeout.reschedule(asyncio.get_running_loop().time())
                return
            logger.warning("whether a caller is still let in cannot be told now: %s", error.message)
        self._wait()
