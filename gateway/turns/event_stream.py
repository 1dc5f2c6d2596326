"""The response that carries a stream: frames as they come, pings while they do not, and an eye on the client."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.access.request_reauth import ENDED
from gateway.rest.event_frames import HEADERS
from gateway.turns.events import Interruption
from gateway.turns.sse import SseRenderer
from loci.agent.v1 import message_service_pb2
from services.common.errors import LociError, Unavailable

logger = logging.getLogger(__name__)

Events = AsyncGenerator[message_service_pb2.TurnEvent | Interruption, None]
_LAST = {"type": "http.response.body", "body": b"", "more_body": False}


class EventStream(Response):
    """Sends `first` and then `events`. Whatever happens, the stream ends as the protocol has it."""

    media_type = "text/event-stream"

    def __init__(
        self,
        first: message_service_pb2.TurnEvent | Interruption,
        events: Events,
        frames: SseRenderer,
        *,
        ping_interval: float | None,
        on_disconnect: Callable[[], Awaitable[None]],
    ) -> None:
        # No body: the headers must not name a length.
        self.status_code, self.background, self.body = 200, None, b""
        self.init_headers(HEADERS)
        del self.headers["content-length"]
        self._first = first
        self._events = events
        self._frames = frames
        self._ping_interval = ping_interval
        self._on_disconnect = on_disconnect
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the stream until it ends or the client leaves."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._sent_at = time.monotonic()
        pump = asyncio.create_task(self._pump(send))
        watch = asyncio.create_task(_disconnected(receive))
        tasks = [pump, watch]
        if self._ping_interval is not None:
            tasks.append(asyncio.create_task(self._keep_alive(send, self._ping_interval)))
        try:
            await asyncio.wait((pump, watch), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _cancel(tasks)
            await self._finish(send, scope.get(ENDED) or Unavailable("the gateway is being stopped"))
            raise
        left = not pump.done()
        await _cancel(tasks)
        if left:
            await self._on_disconnect()

    async def _pump(self, send: Send) -> None:
        try:
            await self._write(send, self._frames_of(self._first))
            async with aclosing(self._events) as events:
                async for event in events:
                    await self._write(send, self._frames_of(event))
        except LociError as error:
            await self._finish(send, error)
        except Exception:  # the response has begun, so only the stream itself can still say so
            logger.exception("a stream met an unexpected error")
            await self._finish(send, None)
        else:
            await send(_LAST)

    async def _finish(self, send: Send, failure: LociError | None) -> None:
        await self._write(send, self._frames.broken(failure))
        await send(_LAST)

    def _frames_of(self, event: message_service_pb2.TurnEvent | Interruption) -> list[bytes]:
        if isinstance(event, Interruption):
            self._frames.interrupted()
            return []
        return self._frames.frames(event)

    async def _write(self, send: Send, frames: list[bytes]) -> None:
        if frames:
            self._sent_at = time.monotonic()
            await send({"type": "http.response.body", "body": b"".join(frames), "more_body": True})

    async def _keep_alive(self, send: Send, interval: float) -> None:
        while True:
            quiet = time.monotonic() - self._sent_at
            if quiet >= interval:
                await self._write(send, [self._frames.ping()])
                quiet = 0.0
            await asyncio.sleep(interval - quiet)


async def _cancel(tasks: Sequence["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
