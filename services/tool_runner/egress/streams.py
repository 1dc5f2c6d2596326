"""Streams of bytes that the proxy puts together: sockets, TLS towards the tool, what was read too far, a meter."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress

from services.tool_runner.core.ports import Connection

READ_BYTES = 64 * 1024
# What is read and dropped of a side that still sends at the end, so that it gets to read what it was told last.
DRAINED_BYTES, DRAINED_SECONDS = 1024 * 1024, 2.0


class Socket:
    """A connection to the world, as `ports.Connection`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """Returns what came; b"" at its end. Raises OSError."""
        return await self._reader.read(READ_BYTES)

    async def write(self, data: bytes) -> None:
        """Waits while it is not taken. Raises OSError."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """See ports.Connection."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    @property
    def is_over(self) -> bool:
        """Returns whether the other side has ended it."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def close(self) -> None:
        """See ports.Connection."""
        self._writer.close()


class PrefixedStream:
    """A connection of which some bytes were read before; `peek` reads without taking."""

    def __init__(self, first: bytes, connection: Connection) -> None:
        self._first = first
        self._connection = connection

    async def peek(self, least: int = 1) -> bytes:
        """Returns at least so many of the next bytes, fewer at its end."""
        while len(self._first) < least and (more := await self._connection.read()):
            self._first += more
        return self._first

    async def read(self) -> bytes:
        """See ports.Connection."""
        first, self._first = self._first, b""
        return first or await self._connection.read()

    async def write(self, data: bytes) -> None:
        """See ports.Connection."""
        await self._connection.write(data)

    async def end(self) -> None:
        """See ports.Connection."""
        await self._connection.end()

    async def close(self) -> None:
        """See ports.Connection."""
        await self._connection.close()


class MeteredStream:
    """A connection whose bytes are counted; `moved` is told how many, and may raise."""

    def __init__(self, connection: Connection, moved: Callable[[int], None]) -> None:
        self._connection = connection
        self._moved = moved

    async def read(self) -> bytes:
        """See ports.Connection."""
        data = await self._connection.read()
        self._moved(len(data))
        return data

    async def write(self, data: bytes) -> None:
        """See ports.Connection."""
        self._moved(len(data))
        await self._connection.write(data)

    async def end(self) -> None:
        """See ports.Connection."""
        await self._connection.end()

    async def close(self) -> None:
        """See ports.Connection."""
        await self._connection.close()


class Tls:
    """The server's side of TLS on a connection. Reading and writing may be done at the same time."""

    def __init__(self, connection: Connection, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._sending = asyncio.Lock()

    async def accept(self) -> None:
        """Does the handshake. Raises OSError (ssl.SSLError) where it fails."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            except ssl.SSLError:
                # The alert that says why.
                await self._flush()
                raise
            else:
                await self._flush()
                return

    async def read(self) -> bytes:
        """See ports.Connection."""
        while True:
            try:
                data = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            else:
                return data

    async def write(self, data: bytes) -> None:
        """See ports.Connection."""
        if data:
            self._tls.write(data)
            await self._flush()

    async def end(self) -> None:
        """See ports.Connection."""
        # It does not wait for the other side's goodbye.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        await self._flush()

    async def close(self) -> None:
        """See ports.Connection."""
        with suppress(OSError):
            await self.end()
        await self._connection.close()

    async def _receive(self) -> None:
        data = await self._connection.read()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        # In the order in which it was made, whoever comes first.
        async with self._sending:
            data = self._outgoing.read()
            if data:
                await self._connection.write(data)


async def drain(connection: Connection) -> None:
    """Ends the writing, and reads on for a while: a connection that is closed with bytes unread is reset (RFC 9112,
    9.6), and what was written last is lost with it."""
    read = 0
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(DRAINED_SECONDS):
            await connection.end()
            while read < DRAINED_BYTES and (data := await connection.read()):
                read += len(data)


async def join(tool: Connection, world: Socket) -> None:
    """Carries bytes both ways until the world's side ends. Raises OSError."""

    async def out() -> None:
        try:
            while data := await tool.read():
                await world.write(data)
            await world.end()
        except OSError:
            # Ends the other way, too.
            await world.close()

    sending = asyncio.create_task(out())
    try:
        while data := await world.read():
            await tool.write(data)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
