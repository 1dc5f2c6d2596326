"""Limits on request bodies: their bytes, and the seconds in which they come."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

from gateway.errors.dialects import answer
from gateway.errors.problems import Problem

# How much of a body that is too large is read and dropped, so that its client gets to read the answer.
_DRAINED_TIMES = 4


@dataclass(frozen=True)
class BodyLimit:
    """Of bodies: their bytes, and the seconds in which they come, as a whole or `by_piece`."""

    bytes: int
    seconds: float
    sentence: str
    by_piece: bool = False

    async def refuse(self, scope: Scope, body: "LimitedBody", send: Send) -> None:
        """Answers one that is too large."""
        with suppress(BodyTooSlow):
            await body.drain()
        await answer(Problem(413, {"detail": self.sentence}), scope).response()(scope, body.receive, send)

    async def give_up(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one that does not come."""
        sentence = f"the request body did not come within {self.seconds:g} s (LOCI_BODY_SECONDS)"
        headers = {"connection": "close", "x-should-retry": "false"}
        await answer(Problem(408, {"detail": sentence}, headers), scope).response()(scope, receive, send)


class BodyTooLarge(BaseException):
    """A body went over the limit while it was read. Not an Exception: frameworks must let it through."""


class BodyTooSlow(BaseException):
    """A body did not come in time. Not an Exception, either."""


class LimitedBody:
    """The `receive` of a request, whose body is held to a limit."""

    def __init__(self, receive: Receive, limit: BodyLimit) -> None:
        self._receive = receive
        self._limit = limit
        self._read = 0
        self._ended = False
        self._deadline = 0.0

    async def receive(self) -> Message:
        """Returns the next message. Raises BodyTooLarge and BodyTooSlow."""
        if self._ended:
            # What comes now is that the client leaves, whenever that is.
            return await self._receive()
        message = await self._in_time()
        if self._read > self._limit.bytes:
            raise BodyTooLarge
        return message

    async def drain(self) -> None:
        """Reads and drops the rest, up to some times the limit. Raises BodyTooSlow."""
        while not self._ended and self._read < self._limit.bytes * _DRAINED_TIMES:
            await self._in_time()

    async def _in_time(self) -> Message:
        if not self._deadline or self._limit.by_piece:
            self._deadline = asyncio.get_running_loop().time() + self._limit.seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        self._read += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        return message
