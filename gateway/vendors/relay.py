"""The vendor's answer as a response: its status, its headers, its body as it comes, and an eye on the client."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.errors.problems import problem_of
from gateway.peers import Peers, stream
from gateway.rest.event_frames import HEADERS, LineEndEscaper, frame
from gateway.vendors.errors import render
from loci.llm.v1 import forward_service_pb2 as wire
from services.common.errors import LociError, Unavailable

logger = logging.getLogger(__name__)

# Told what the model said, before the client is told that the answer is complete.
Ended = Callable[[str], Awaitable[None]]
_LAST = {"type": "http.response.body", "body": b"", "more_body": False}
_STREAM = "text/event-stream"


class Relay(Response):
    """Makes the request when it is served. Its client's leaving cancels it."""

    def __init__(self, peers: Peers, request: wire.ForwardRequest, ended: Ended | None = None) -> None:
        super().__init__()
        self._peers = peers
        self._request = request
        self._ended = ended
        # Of the answer, once it has begun.
        self._content_type: str | None = None
        self._escaper = LineEndEscaper()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the answer until it ends or the client leaves."""
        pump = asyncio.create_task(self._pump(send))
        watch = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((pump, watch), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watch.cancel()
            if not pump.done():
                pump.cancel()
            await asyncio.wait((pump, watch))
        if not pump.cancelled():
            pump.result()

    async def _pump(self, send: Send) -> None:
        try:
            await self._pass_on(send)
        except LociError as error:
            if self._content_type is None:
                raise
            logger.warning("a vendor's answer broke off: %s", error.message)
            if self._content_type.startswith(_STREAM):
                body = frame(render(replace(problem_of(error), message=error.message)).body, "error")
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send(_LAST)

    async def _pass_on(self, send: Send) -> None:
        async with stream(self._peers.forwards.Forward(self._request, wait_for_ready=True)) as events:
            async for event in events:
                match event.WhichOneof("event"):
                    case "head":
                        await self._begin(event.head, send)
                    case "chunk":
                        await send({"type": "http.response.body", "body": self._chunk(event.chunk), "more_body": True})
                    case "end":
                        if rest := self._escaper.close():
                            await send({"type": "http.response.body", "body": rest, "more_body": True})
                        if self._ended is not None:
                            await self._ended(event.end.text)
                        await send(_LAST)
                        return
        raise Unavailable("the answer ended before its end", reason="STREAM_INCOMPLETE")

    def _chunk(self, chunk: bytes) -> bytes:
        return self._escaper.feed(chunk) if (self._content_type or "").startswith(_STREAM) else chunk

    async def _begin(self, head: wire.ForwardHead, send: Send) -> None:
        self._content_type = head.headers.get("content-type", "")
        # A vendor's own word on caches says less.
        own = HEADERS if self._content_type.startswith(_STREAM) else {}
        headers = [
            (name.encode(), value.encode("latin-1", "replace")) for name, value in {**head.headers, **own}.items()
        ]
        await send({"type": "http.response.start", "status": head.status, "headers": headers})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
