"""A small HTTP/1.1 server on asyncio transports, light enough to stand under a benchmark.

It knows what a fake provider needs and no more: requests with a Content-Length, keep-alive, whole and chunked
replies, and being told when the client goes away. It listens on loopback only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Self, cast
from urllib.parse import parse_qs

LOOPBACK = "127.0.0.1"
REASONS = {
    101: "Switching Protocols",
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
}
_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are lower case, `query` keeps the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class ClientGone(Exception):
    """The client closed the connection before the reply was complete."""


class Exchange:
    """The reply side of one request: either one `send`, or `start`, any number of `write`, and `end` or
    `cut`.
    """

    def __init__(self, connection: "_Connection") -> None:
        self._connection = connection

    async def send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole reply with a Content-Length."""
        head = _head(status, {**headers, "content-length": str(len(body))})
        await self._connection.write(head + body)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a chunked reply."""
        await self._connection.write(_head(status, {**headers, "transfer-encoding": "chunked"}))

    async def write(self, *pieces: bytes) -> None:
        """Send each piece as a chunk of its own; all in one write to the socket."""
        await self._connection.write(b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces))

    async def end(self) -> None:
        """End a chunked reply properly."""
        await self._connection.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection in the middle of the reply."""
        self._connection.close()

    async def wait_gone(self) -> None:
        """Return when the client has closed the connection."""
        await self._connection.gone.wait()

    async def switch(self, head: Mapping[str, str], take: Callable[[bytes], None]) -> None:
        """Leave HTTP (101): all that comes from now on is given to `take`."""
        await self._connection.write(_head(101, head))
        self._connection.switch(take)

    async def write_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._connection.write(data)


Handler = Callable[[Request, Exchange], Awaitable[None]]


class _Connection(asyncio.Protocol):
    """One client connection: parses requests, runs them one after another."""

    def __init__(self, handler: Handler, connections: "set[_Connection]") -> None:
        self._handler = handler
        self._connections = connections
        self._buffer = bytearray()
        self._pending: asyncio.Queue[Request] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._take: Callable[[bytes], None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but class
        self._connections.add(self)
        self._worker = asyncio.get_running_loop().create_task(self._work())

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self._writable.set()
        self._connections.discard(self)
        if self._worker is not None:
            self._worker.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._take is not None:
            self._take(data)
            return
        self._buffer += data
        while (request := _parse(self._buffer)) is not None:
            self._pending.put_nowait(request)

    def switch(self, take: Callable[[bytes], None]) -> None:
        """The connection speaks another protocol from now on."""
        self._take = take
        if self._buffer:
            take(bytes(self._buffer))
            self._buffer.clear()

    async def write(self, data: bytes) -> None:
        if self.gone.is_set():
            raise ClientGone
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        self._transport.close()

    async def _work(self) -> None:
        while not self.gone.is_set():
            request = await self._pending.get()
            try:
                await self._handler(request, Exchange(self))
            except ClientGone:
                return


class HttpServer:
    """Serves `handler` on loopback; `port` 0 picks a free one, known after `start`."""

    def __init__(self, handler: Handler, port: int = 0) -> None:
        self._handler = handler
        self.port = port
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        # How many connections clients have made.
        self.accepted = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, LOOPBACK, self.port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        return len(self._connections)

    def close_connections(self) -> None:
        """Close what clients hold open."""
        for connection in list(self._connections):
            connection.close()

    def _accept(self) -> _Connection:
        self.accepted += 1
        return _Connection(self._handler, self._connections)

    async def stop(self) -> None:
        """Stop listening and close every open connection."""
        if self._server is None:
            return
        self._server.close()
        self.close_connections()
        await self._server.wait_closed()
        await asyncio.sleep(0)
        self._server = None


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _parse(buffer: bytearray) -> Request | None:
    """Take one whole request off the front of `buffer`, or return None while it is incomplete."""
    end = buffer.find(_HEAD_END)
    if end < 0:
        return None
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    stop = end + len(_HEAD_END) + int(headers.get("content-length", 0))
    if len(buffer) < stop:
        return None
    body = bytes(buffer[end + len(_HEAD_END) : stop])
    del buffer[:stop]
    method, target, _ = first.split(" ", 2)
    path, _, query = target.partition("?")
    return Request(method, path, {k: v[-1] for k, v in parse_qs(query).items()}, headers, body)
