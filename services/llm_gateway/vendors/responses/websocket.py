"""The WebSocket of OpenAI's Responses: one for each run, so that its second call sends what is new alone.

After a whole reply the vendor keeps it with the connection. A request that goes on from there names it
(`previous_response_id`) and holds only the items behind those that both sides have; one that does not (the history was
shortened, other thoughts) is sent whole, on the same connection. Requests may also be prepared ahead there
("generate": false): of no use here, where a call is known only when it is due.

A connection lasts an hour at most; ours are given up before, and when nothing is asked for a while.
Source, read in November 2026: developers.openai.com/api/docs/guides/websocket-mode.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx2
import orjson

from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.client import WebSockets
from services.llm_gateway.http.routes import Routes

logger = logging.getLogger(__name__)

_MOST = 128
_LONGEST_SECONDS = 55 * 60.0
_IDLE_SECONDS = 120.0
# After an endpoint refused one, it is left alone with them so long.
_REFUSED_SECONDS = 60.0
_OPEN_SECONDS = 10.0
_HEARTBEAT_SECONDS = 30.0
_LARGEST_MESSAGE = 16 * 1024 * 1024
# What the handshake says itself, or what has no meaning there.
_NO_HANDSHAKE = frozenset({"accept", "accept-encoding", "connection", "content-type", "content-length", "host"})


class SocketLost(Exception):
    """The connection broke or closed before the reply was complete."""


@dataclass(slots=True)
class Socket:
    """One connection, and what the vendor keeps with it: the reply `response_id` of `model` to the items with these
    digests, its own items among them."""

    ws: aiohttp.ClientWebSocketResponse
    opened_at: float = field(default_factory=time.monotonic)
    response_id: str = ""
    model: str = ""
    digests: Sequence[bytes] = ()
    watch: asyncio.Task[None] | None = None

    def message(self, body: Mapping[str, Any]) -> bytes:
        """Returns the message for a request with this body."""
        items: Sequence[Any] = body["input"]
        fields = {"type": "response.create", **body}
        if self._continues(body):
            fields |= {"previous_response_id": self.response_id, "input": items[len(self.digests) :]}
        return orjson.dumps(fields)

    def _continues(self, body: Mapping[str, Any]) -> bool:
        known = len(self.digests)
        if not self.response_id or self.model != body["model"] or len(body["input"]) <= known:
            return False
        return digests(body["input"][:known]) == self.digests

    def keep(self, body: Mapping[str, Any], response_id: str, items_of_reply: Iterable[Any]) -> None:
        """Remembers the reply to that body, whose items are `items_of_reply`."""
        self.response_id, self.model = response_id, body["model"]
        self.digests = digests([*body["input"], *items_of_reply])

    async def events(self, message: bytes, patience: float) -> AsyncGenerator[bytes, None]:
        """Sends the message, then yields what comes; `patience` is the longest wait for each, in seconds. Raises
        SocketLost and TimeoutError.
        """
        try:
            await self.ws.send_str(message.decode())
        except (aiohttp.ClientError, OSError) as error:
            raise SocketLost(str(error)) from error
        while True:
            came = await self.ws.receive(timeout=patience)
            if came.type is aiohttp.WSMsgType.TEXT:
                yield came.data.encode()
            else:
                raise SocketLost(f"the connection ended ({came.type.name.lower()})")


def digests(items: Iterable[Any]) -> list[bytes]:
    """Returns what tells items apart, in few bytes: histories are long, and connections many."""
    return [hashlib.blake2b(orjson.dumps(item), digest_size=16).digest() for item in items]


class Sockets:
    """The connections of one provider, by run. At most `most`; `idle_seconds` after its last call one is closed."""

    def __init__(
        self,
        config: ProviderConfig,
        routes: Routes,
        path: str,
        *,
        most: int = _MOST,
        idle_seconds: float = _IDLE_SECONDS,
        longest_seconds: float = _LONGEST_SECONDS,
    ) -> None:
        self._opener = WebSockets(config)
        self._routes = routes
        self._path = path
        self._most = most
        self._idle_seconds = idle_seconds
        self._longest_seconds = longest_seconds
        # In the order of their last use; those in use are not idle.
        self._idle: dict[str, Socket] = {}
        self._busy: set[str] = set()
        self._closing: set[asyncio.Task[Any]] = set()
        self._refused_until = 0.0

    async def borrow(self, key: str, *, fresh: bool = False) -> Socket | None:
        """Returns the run's connection, or a new one (always with `fresh`); to be given back or dropped. None where
        there can be none now: the run's own is in use, there are too many, or the endpoint refuses them.
        """
        if key in self._busy:
            return None
        self._busy.add(key)
        socket = None
        try:
            socket = await self._reuse(key, fresh=fresh) or await self._open()
        finally:
            if socket is None:
                self._busy.discard(key)
        return socket

    def give_back(self, key: str, socket: Socket) -> None:
        """Keeps it for the run's next call."""
        self._busy.discard(key)
        self._idle[key] = socket
        socket.watch = asyncio.create_task(self._watch(key, socket))

    def drop(self, key: str, socket: Socket) -> None:
        """Closes it: the call there is given up."""
        self._busy.discard(key)
        self._close(socket)

    async def close(self) -> None:
        """Closes all."""
        idle, self._idle = self._idle, {}
        for socket in idle.values():
            self._close(socket)
        await asyncio.gather(*self._closing)
        await self._opener.close()

    async def _reuse(self, key: str, *, fresh: bool) -> Socket | None:
        socket = self._idle.pop(key, None)
        if socket is None:
            return None
        if socket.watch is not None:
            socket.watch.cancel()
            await asyncio.wait((socket.watch,))
            if not socket.watch.cancelled():  # it ended just now
                return None
        if fresh or socket.ws.closed or time.monotonic() - socket.opened_at > self._longest_seconds:
            self._close(socket)
            return None
        return socket

    async def _open(self) -> Socket | None:
        if time.monotonic() < self._refused_until or not self._has_room():
            return None
        route = await self._routes.find("GET", self._path, b"")
        headers = {name: value for name, value in route.headers.items() if name not in _NO_HANDSHAKE}
        url = route.url.copy_with(scheme="ws" if route.url.scheme == "http" else "wss")
        timeouts = aiohttp.ClientWSTimeout(ws_close=1.0)
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                ws = await self._opener.open(
                    str(url),
                    headers,
                    heartbeat=_HEARTBEAT_SECONDS,
                    max_msg_size=_LARGEST_MESSAGE,
                    timeout=timeouts,
                )
        except (aiohttp.ClientError, OSError, TimeoutError, httpx2.ConnectError) as error:
            # Over HTTP the same is tried, and what is wrong is said.
            logger.info("no WebSocket to %s: %s", url.host, type(error).__name__)
            self._refused_until = time.monotonic() + _REFUSED_SECONDS
            return None
        return Socket(ws)

    def _has_room(self) -> bool:
        if len(self._idle) + len(self._busy) <= self._most:
            return True
        if not self._idle:
            return False
        self._close(self._idle.pop(next(iter(self._idle))))
        return True

    async def _watch(self, key: str, socket: Socket) -> None:
        """Answers the vendor's pings while nothing is asked, and closes it when it ends or was idle for long."""
        with suppress(TimeoutError):
            await socket.ws.receive(timeout=self._idle_seconds)
        if self._idle.get(key) is socket:
            del self._idle[key]
        self._close(socket)

    def _close(self, socket: Socket) -> None:
        """Closes it in the background: a cancelled caller does not wait for the vendor's goodbye."""
        if socket.watch is not None and socket.watch is not asyncio.current_task():
            socket.watch.cancel()
        task = asyncio.create_task(socket.ws.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
