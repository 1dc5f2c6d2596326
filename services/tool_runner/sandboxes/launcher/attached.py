"""The attached stream of a container, without blocking: plain or TLS, and what is printed told apart."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

_CHUNK = 64 * 1024
_AGAIN_SECONDS = 0.01  # TLS that wants the other direction first, which is rare
_HEADER_BYTES = 8
_STDOUT = 1


class AttachedStream:
    """One reader and one writer at a time; all on the loop that made it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop = asyncio.get_running_loop()

    async def read(self) -> bytes:
        """Returns what came; b"" at its end. Raises OSError."""
        while True:
            try:
                return self._socket.recv(_CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError):
                await self._ready(self._loop.add_reader, self._loop.remove_reader)
            except ssl.SSLWantWriteError:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def write(self, data: bytes) -> None:
        """Gives all of it; raises OSError."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                await self._ready(self._loop.add_writer, self._loop.remove_writer)
            except ssl.SSLWantReadError:
                await asyncio.sleep(_AGAIN_SECONDS)

    def close(self) -> None:
        """Ends it: the container reads the end of its stdin. Nobody may read or writes any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        ready = self._loop.create_future()
        descriptor = self._socket.fileno()
        add(descriptor, _done, ready)
        try:
            await ready
        finally:
            remove(descriptor)


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Streams:
    """Tells apart what the engine joined: per frame one byte of stream, three of nothing, four of length.

    Nothing is held back but an unfinished header: a frame may be announced longer than any memory.
    """

    def __init__(self) -> None:
        self._header = b""
        self._left = 0
        self._stdout = False

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """Returns what of it is stdout, and what stderr."""
        out: list[bytes] = []
        err: list[bytes] = []
        while data:
            if not self._left:
                missing = _HEADER_BYTES - len(self._header)
                self._header, data = self._header + data[:missing], data[missing:]
                if len(self._header) == _HEADER_BYTES:
                    self._stdout, self._left = self._header[0] == _STDOUT, int.from_bytes(self._header[4:], "big")
                    self._header = b""
                continue
            piece, data = data[: self._left], data[self._left :]
            self._left -= len(piece)
            (out if self._stdout else err).append(piece)
        return b"".join(out), b"".join(err)
