"""A line to Postgres that can fall silent: it is there, it takes what is sent, and nothing comes back.

That is what a firewall that forgot a connection, a frozen host or a pulled cable look like to a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit


class PostgresLine:
    """Leads every connection on to a server's Unix socket, from a port of the loopback address."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._path = f"{query.pop('host')}/.s.PGSQL.{query.pop('port', '5432')}"
        self._parts, self._query = parts, query
        self._server: asyncio.Server | None = None
        self._speaks = asyncio.Event()
        self._speaks.set()
        self._swallows = False
        self._ends = asyncio.Event()
        self._ends.set()
        self._tasks: set[asyncio.Task[None]] = set()
        # Connections that were made by it.
        self.made = 0

    @property
    def url(self) -> str:
        """The database's URL by this line."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._parts.netloc.rpartition('@')[0]}@" if "@" in self._parts.netloc else ""
        where = f"{user}127.0.0.1:{port}"
        return urlunsplit((self._parts.scheme, where, self._parts.path, urlencode(self._query), ""))

    def fall_silent(self) -> None:
        """Holds back all that the server says, on lines that are there and on new ones."""
        self._speaks.clear()

    def swallow(self) -> None:
        """Loses what clients say from now on, on lines that are there."""
        self._swallows = True

    def hold_ends(self) -> None:
        """Does not tell that the server has closed a connection; what it said before comes."""
        self._ends.clear()

    def speak(self) -> None:
        """Lets all through again."""
        self._swallows = False
        self._ends.set()
        self._speaks.set()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made += 1
        far_reader, far_writer = await asyncio.open_unix_connection(self._path)
        ways = [self._copy(reader, far_writer, False), self._copy(far_reader, writer, True)]
        try:
            async with asyncio.TaskGroup() as group:
                for way in ways:
                    group.create_task(way)
        finally:
            for end in (writer, far_writer):
                end.close()

    async def _copy(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, held: bool) -> None:
        try:
            while data := await source.read(65_536):
                if held:
                    await self._speaks.wait()
                elif self._swallows:
                    continue
                to.write(data)
                await to.drain()
        except ConnectionError:
            pass
        if held:
            await self._ends.wait()
        to.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._lead(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[PostgresLine]:
        """Leads while this block runs."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
