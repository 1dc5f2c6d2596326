"""Notices between replicas by LISTEN and NOTIFY: one connection, one channel, one small transaction in 20 ms.

Never in a transaction with a fact: commits that notify are made one after the other in the whole server. Nothing is
promised, so what cannot be sent is forgotten: everyone looks for himself once a second.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, get_args
from uuid import UUID

from services.agent.core.ports_streams import Notice
from services.common.database import DRIVER_ERRORS, connect, connect_options
from services.common.database_settings import DatabaseSettings

CHANNEL = "loci_agent"
BATCH_SECONDS = 0.02
# A payload has less than 8,000 bytes; a notice is a letter, 32 digits and a comma.
_AT_ONCE = 230
# Notices that wait at most; further ones are forgotten.
_MOST = 20_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# The connection is tried when nothing was sent for so long.
_IDLE_SECONDS, _PATIENCE = 10.0, 5.0
# The statement is its own transaction; nothing is lost with it.
_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"
_LETTERS: dict[str, Notice] = {name[0]: name for name in get_args(Notice)}

_log = logging.getLogger(__name__)


class PostgresNotices:
    """`core.ports_streams.Notifier`. `run` holds a connection until cancelled; url: not that of PgBouncer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: dict[tuple[Notice, UUID], None] = {}
        self._filled = asyncio.Event()
        self._connected = asyncio.Event()
        # Called with each notice of another replica.
        self.on_notice: Callable[[Notice, UUID], None] = lambda notice, subject_id: None

    def tell(self, notice: Notice, subject_id: UUID) -> None:
        """Tells the other replicas within 20 ms, if they can be reached."""
        if self._connected.is_set() and len(self._waiting) < _MOST:
            self._waiting[notice, subject_id] = None
            self._filled.set()

    async def connected(self) -> None:
        """Returns when notices come and go."""
        await self._connected.wait()

    async def run(self) -> None:
        """Listens and sends until cancelled; connects again when the connection is lost."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._exchange()
            except (TimeoutError, *DRIVER_ERRORS) as error:
                if self._connected.is_set():
                    pause = _FIRST_PAUSE
                _log.warning("the connection for notices was lost: %s", error)
            finally:
                self._connected.clear()
                self._waiting.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _exchange(self) -> None:
        connection = await connect(self._url, **connect_options())
        try:
            await connection.add_listener(CHANNEL, self._receive)
            self._connected.set()
            while True:
                await self._send(connection)
        finally:
            with suppress(OSError, TimeoutError, *DRIVER_ERRORS):
                await connection.close(timeout=1.0)

    async def _send(self, connection: Any) -> None:
        self._filled.clear()
        if not self._waiting:
            try:
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._filled.wait()
            except TimeoutError:
                await connection.execute("SELECT 1", timeout=_PATIENCE)
                return
        await asyncio.sleep(BATCH_SECONDS)
        waiting, self._waiting = self._waiting, {}
        entries = iter(waiting)
        while some := list(islice(entries, _AT_ONCE)):
            payload = ",".join(f"{notice[0]}{subject_id.hex}" for notice, subject_id in some)
            await connection.execute(_NOTIFY, CHANNEL, payload, timeout=_PATIENCE)

    def _receive(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if pid == connection.get_server_pid():
            return
        for notice, subject_id in _parse_payload(str(payload)):
            self.on_notice(notice, subject_id)


class NoPeers:
    """No other replicas, or none that notices can reach."""

    def __init__(self) -> None:
        self.on_notice: Callable[[Notice, UUID], None] = lambda notice, subject_id: None

    def tell(self, notice: Notice, subject_id: UUID) -> None:
        """Does nothing."""

    async def run(self) -> None:
        """Waits until cancelled: nothing comes."""
        await asyncio.get_running_loop().create_future()


def notices_of(database: DatabaseSettings) -> PostgresNotices | NoPeers:
    """Returns notices through a database; none where only PgBouncer is known, which forgets who listens."""
    if database.pgbouncer and database.direct_url == database.url:
        _log.warning("replicas hear of one another once a second only: set LOCI_DATABASE_DIRECT_URL to Postgres itself")
        return NoPeers()
    return PostgresNotices(database.direct_url)


def _parse_payload(payload: str) -> Iterator[tuple[Notice, UUID]]:
    for entry in payload.split(","):
        notice = _LETTERS.get(entry[:1])
        # A newer release may know of more.
        if notice is not None:
            yield notice, UUID(hex=entry[1:])
