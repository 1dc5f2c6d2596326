"""Sockets, which last for days: whoever was let in is looked at again while they do."""

import logging
import time
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Send

from services.common.errors import LociError, PermissionDenied, Unauthenticated

logger = logging.getLogger(__name__)

_POLICY_VIOLATION = 1008


class Lasting:
    """The two ends of a socket. It closes (1008) with the first that comes or goes once its caller is let in no more.

    `ask` raises Unauthenticated or PermissionDenied for such a caller; it is called once in `seconds` at most, and what
    it fails of otherwise closes nothing.
    """

    def __init__(self, ask: Callable[[], Awaitable[object]], seconds: float, receive: Receive, send: Send) -> None:
        self._ask = ask
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._receive = receive
        self._send = send
        self._closed = False

    async def receive(self) -> Message:
        """What comes next."""
        message = await self._receive()
        if message["type"] == "websocket.receive" and not await self._is_welcome():
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}
        return message

    async def send(self, message: Message) -> None:
        """Sends one. Raises OSError, as ASGI has it, where the socket is closed."""
        if message["type"] == "websocket.send" and not await self._is_welcome():
            raise OSError("the socket's caller is let in no more")
        await self._send(message)

    async def _is_welcome(self) -> bool:
        now = time.monotonic()
        if self._closed or now < self._until:
            return not self._closed
        # Before asking, so that the other end does not ask meanwhile.
        self._until = now + self._seconds
        try:
            await self._ask()
        except (Unauthenticated, PermissionDenied) as error:
            if not self._closed:
                self._closed = True
                await self._send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": error.message[:100]})
        except LociError as error:
            logger.warning("whether a socket's caller is still let in cannot be told now: %s", error.message)
        return not self._closed
