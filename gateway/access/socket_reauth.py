"""Sockets, which last for days: whoever was let in is looked at again while they do."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.types import Message, Receive, Send

from services.common.errors import LociError

logger = logging.getLogger(__name__)

_POLICY_VIOLATION = 1008
# Of our own faults nobody is told: these say that the caller is let in no more.
LET_IN_NO_MORE = ("CREDENTIAL_INVALID", "ROLE_NOT_PERMITTED", "ORIGIN_NOT_ALLOWED")
# What goes through a socket does not wait longer for an answer.
_PATIENCE_SECONDS = 1.0


class SocketReauth:
    """The two ends of a socket. It closes (1008) with the first that comes or goes once its caller is let in no more.

    `ask` raises a LociError that says so for such a caller; it is called once in `seconds` at most. What it fails of
    otherwise closes nothing, nor that it takes long.
    """

    def __init__(self, ask: Callable[[], Awaitable[object]], seconds: float, receive: Receive, send: Send) -> None:
        self._ask = ask
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._receive = receive
        self._send = send
        self._closed = False

    async def receive(self) -> Message:
        """Returns the next message."""
        message = await self._receive()
        if message["type"] == "websocket.receive" and not await self._is_authorized():
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}
        return message

    async def send(self, message: Message) -> None:
        """Sends one. Raises OSError, as ASGI has it, where the socket is closed."""
        if message["type"] == "websocket.send" and not await self._is_authorized():
            raise OSError("the socket's caller is let in no more")
        await self._send(message)

    async def _is_authorized(self) -> bool:
        now = time.monotonic()
        if self._closed or now < self._until:
            return not self._closed
        # Before asking, so that the other end does not ask meanwhile.
        self._until = now + self._seconds
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._ask()
        except TimeoutError:
            logger.warning("whether a socket's caller is still let in was not told in time")
        except LociError as error:
            if error.reason not in LET_IN_NO_MORE:
                logger.warning("whether a socket's caller is still let in cannot be told now: %s", error.message)
            elif not self._closed:
                self._closed = True
                reason = error.message[:100]
                with suppress(OSError):  # it has left
                    await self._send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason})
        return not self._closed
