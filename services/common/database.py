"""Postgres for the turn path: asyncpg pools, a counter of statements, and waiting for a database to come up.

All SQL names its schema; nothing sets session state (`SET LOCAL` only), so a connection needs no reset when
it is returned, which saves a round trip each time, and PgBouncer in transaction mode may stand between.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import orjson

from services.common.settings import SettingsError

_NOT_YET = (
    OSError,
    TimeoutError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.TooManyConnectionsError,
)
_WRONG = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InterfaceError,
    ValueError,
)
_BEGIN = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_END = re.compile(r"\s*(?:COMMIT|END|ROLLBACK(?!\s+TO))\b", re.IGNORECASE)
_NESTED = re.compile(r"\s*(?:SAVEPOINT|RELEASE|ROLLBACK\s+TO)\b", re.IGNORECASE)

Init = Callable[[Any], Awaitable[object]]


class StatementCounter:
    """Counts what pools opened with it send, for benches and tests.

    statements: without BEGIN, COMMIT, ROLLBACK and savepoints. transactions: explicit blocks, and statements
    outside of one. texts: the statements' SQL in order, kept only with `keep_texts`. Counts lag by one turn
    of the event loop.
    """

    def __init__(self, *, keep_texts: bool = False) -> None:
        self.statements = 0
        self.transactions = 0
        self.texts: list[str] = []
        self._keep_texts = keep_texts

    def reset(self) -> None:
        """Back to zero."""
        self.statements = self.transactions = 0
        self.texts.clear()

    def attach(self, connection: asyncpg.Connection) -> None:
        """Counts what `connection` sends from now on; outside of a transaction, please."""
        connection.add_query_logger(_ConnectionCounter(self).logged)

    def add(self, text: str, *, new_transaction: bool) -> None:
        """One statement."""
        self.statements += 1
        self.transactions += new_transaction
        if self._keep_texts:
            self.texts.append(text)


class _ConnectionCounter:
    def __init__(self, counter: StatementCounter) -> None:
        self._counter = counter
        self._in_block = False

    def logged(self, record: Any) -> None:
        text = record.query
        if _BEGIN.match(text):
            self._in_block = True
            self._counter.transactions += 1
        elif _NESTED.match(text):
            pass
        elif _END.match(text):
            self._in_block = False
        else:
            self._counter.add(text, new_transaction=not self._in_block)


class Connection(asyncpg.Connection):  # type: ignore[misc]
    """An asyncpg connection that is returned to its pool without a reset query."""

    __slots__ = ()

    def get_reset_query(self) -> str:
        """None is needed: see the module."""
        return ""


async def open_pool(
    url: str,
    *,
    size: int = 10,
    idle: int = 1,
    pgbouncer: bool = False,
    counter: StatementCounter | None = None,
    init: Init | None = None,
) -> asyncpg.Pool:
    """A pool of at most `size` connections; `idle` open at once, further ones close after 5 idle minutes.

    jsonb and json are Python data by orjson (give `orjson.Fragment(text)` for JSON that is already
    serialized), uuid is `uuid.UUID`. With `pgbouncer` no prepared statement is kept (transaction mode) and
    `jit` must be off for the role. init: a coroutine function run on each new connection, for further codecs.
    Raises what `wait_for_database` explains; call that first.
    """

    async def prepare(connection: asyncpg.Connection) -> None:
        await set_codecs(connection)
        if init is not None:
            await init(connection)
        if counter is not None:
            counter.attach(connection)

    return await asyncpg.create_pool(
        url,
        min_size=min(idle, size),
        max_size=size,
        max_inactive_connection_lifetime=300.0,
        connection_class=Connection,
        init=prepare,
        **connect_options(pgbouncer=pgbouncer),
    )


def connect_options(*, pgbouncer: bool = False) -> dict[str, Any]:
    """Options of `asyncpg.connect` that all our connections share."""
    if pgbouncer:
        # It refuses start-up parameters that it does not know.
        return {"statement_cache_size": 0, "timeout": 10.0}
    # jit costs more than it gains on statements that take a millisecond.
    return {"server_settings": {"jit": "off"}, "timeout": 10.0}


async def set_codecs(connection: asyncpg.Connection) -> None:
    """json and jsonb through orjson."""
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(data[1:]),
        format="binary",
    )
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=orjson.dumps, decoder=orjson.loads, format="binary"
    )


async def wait_for_database(url: str, *, timeout: float = 30.0, setting: str = "LOCI_DATABASE_URL") -> None:
    """Returns when the database answers; SettingsError, naming `setting`, when it does not or refuses us."""
    end = time.monotonic() + timeout
    pause = 0.05
    while True:
        try:
            connection = await asyncpg.connect(url, timeout=max(0.1, min(5.0, end - time.monotonic())))
        except _WRONG as error:
            raise SettingsError(f"{setting} ({without_password(url)}) is refused: {_line(error)}") from None
        except _NOT_YET as error:
            if time.monotonic() + pause >= end:
                problem = f"does not answer within {timeout:g} s: {_line(error)}"
                raise SettingsError(f"{setting} ({without_password(url)}) {problem}") from None
        else:
            await connection.close()
            return
        await asyncio.sleep(pause)
        pause = min(pause * 2, 1.0)


def without_password(url: str) -> str:
    """`url` as it may be shown."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = re.sub(r"(password=)[^&]*", r"\1***", parts.query)
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query))


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
