"""Postgres for the turn path: asyncpg pools, and waiting for a database to come up.

Nothing waits for ever: a connection that falls silent, a pool that is used up and a transaction whose owner froze each
have a bound (docs/decisions/0110-nothing-waits-for-ever.md). All SQL names
its schema; nothing sets session state (`SET LOCAL` only), so a connection needs no reset when it is returned, which
saves a round trip each time, and PgBouncer in transaction mode may stand between.
"""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import asyncpg
import orjson

from services.common.errors import Unavailable
from services.common.settings import SettingsError
from services.common.statement_counter import ConnectionCounter, CountingStatement
from services.common.statement_counter import StatementCounter as StatementCounter

# Longest wait for a statement; then its connection is given up.
STATEMENT_SECONDS = 30.0
# Longest wait for a connection of a pool, and for one to be given back.
ACQUIRE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
# What the server does without a client that is there.
_SERVER_SIDE = {
    "client_connection_check_interval": "5s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# The same from our side, of what TCP knows here: seconds, but for the last, which is milliseconds.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}

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

# All that the driver itself raises.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# An InternalClientError is a statement on a connection whose last word, that it was ended, has
# been read while its end has not.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

Init = Callable[[Any], Awaitable[object]]


class ConnectFailed(asyncpg.InterfaceError):  # type: ignore[misc]
    """Nobody accepts connections there, or not in time: what the driver tells by an OSError, which may be anything."""


class DatabaseSilent(asyncpg.InterfaceError):  # type: ignore[misc]
    """No answer came in time, or no connection was free: `is_lost`, as where the connection broke."""


@contextmanager
def _told_as_silence(what: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise DatabaseSilent(what) from error


class Connection(asyncpg.Connection):  # type: ignore[misc]
    """An asyncpg connection that is returned to its pool without a reset query, and can be counted.

    A statement without an answer in time raises DatabaseSilent.
    """

    __slots__ = ("counted",)

    def __init__(self, protocol: Any, transport: Any, *args: Any, **options: Any) -> None:
        super().__init__(protocol, transport, *args, **options)
        self.counted: ConnectionCounter | None = None
        _keep_alive(transport.get_extra_info("socket"))

    def get_reset_query(self) -> str:
        """Returns none: see the module."""
        return ""

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        """Executes as asyncpg does; BEGIN and COMMIT come through here, too."""
        with _told_as_silence("a statement was not answered in time"):
            return await super().execute(query, *args, **options)

    async def _do_execute(self, *args: Any, **options: Any) -> Any:
        with _told_as_silence("a statement was not answered in time"):
            return await super()._do_execute(*args, **options)

    async def _cleanup_stmts(self) -> None:
        # Of all that asyncpg sends, this alone has no time limit.
        try:
            async with asyncio.timeout(STATEMENT_SECONDS):
                await super()._cleanup_stmts()
        except TimeoutError as error:
            self.terminate()
            raise DatabaseSilent("a statement was not closed in time") from error

    async def prepare(self, query: str, **options: Any) -> Any:
        """Prepares as asyncpg does, and counts here, because asyncpg's query log misses such statements."""
        with _told_as_silence("a statement was not prepared in time"):
            statement = await super().prepare(query, **options)
        return BoundedStatement(
            statement if self.counted is None else CountingStatement(statement, query, self.counted)
        )

    def count(self, counter: StatementCounter) -> None:
        """Tells `counter` of every statement from now on; call it outside of a transaction."""
        self.counted = ConnectionCounter(counter)
        self.add_query_logger(lambda record: self.counted.sent(record.query))


class BoundedStatement:
    """An asyncpg prepared statement whose silence is told as that of its connection."""

    def __init__(self, statement: Any) -> None:
        self._statement = statement

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._statement, name)
        if name not in {"fetch", "fetchval", "fetchrow", "fetchmany", "executemany"}:
            return found

        async def told(*args: Any, **options: Any) -> Any:
            with _told_as_silence("a statement was not answered in time"):
                return await found(*args, **options)

        return told


class Pool(asyncpg.Pool):  # type: ignore[misc]
    """A pool that is waited for only so long (`patience`, seconds), by who takes and by who gives back a connection."""

    patience = ACQUIRE_SECONDS

    async def _acquire(self, timeout: float | None) -> Any:
        patience = self.patience if timeout is None else timeout
        with _told_as_silence("no connection to the database was free in time"):
            if self._queue.empty():
                return await super()._acquire(patience)
            # Free at once, so that no timer is needed; it is for the way back alone.
            connection = await super()._acquire(None)
            connection._holder._timeout = patience
            return connection

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Gives a connection back, or ends it where the server does not say what became of its last statement."""
        # What the driver says between the server's last word and the end of a connection: it goes as a closed one does.
        ending = suppress(asyncpg.InternalClientError)
        with ending, _told_as_silence("a connection could not be given back in time"):
            await super().release(connection, timeout=timeout)


def _keep_alive(connected: socket.socket | None) -> None:
    if connected is None or connected.family == socket.AF_UNIX:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


async def open_pool(
    url: str,
    *,
    size: int = 10,
    idle: int = 1,
    pgbouncer: bool = False,
    counter: StatementCounter | None = None,
    init: Init | None = None,
    patience: float = STATEMENT_SECONDS,
    acquire_patience: float = ACQUIRE_SECONDS,
) -> asyncpg.Pool:
    """Returns a pool of at most `size` connections; `idle` open at once, further ones close after 5 idle minutes.

    jsonb and json are Python data by orjson (give `orjson.Fragment(text)` for JSON that is already
    serialized), uuid is `uuid.UUID`. With `pgbouncer` no prepared statement is kept (transaction mode) and
    `jit` must be off for the role. init: a coroutine function run on each new connection, for further codecs.
    patience, acquire_patience: longest waits for a statement and for a connection, seconds; then DatabaseSilent is
    raised. Raises what `wait_for_database` explains; call that first.
    """

    async def prepare(connection: Connection) -> None:
        await set_codecs(connection)
        if init is not None:
            await init(connection)
        if counter is not None:
            connection.count(counter)

    pool = Pool(
        url,
        connect=connect,
        min_size=min(idle, size),
        max_size=size,
        max_queries=50_000,
        max_inactive_connection_lifetime=300.0,
        connection_class=Connection,
        record_class=asyncpg.Record,
        init=prepare,
        loop=None,
        **connect_options(pgbouncer=pgbouncer, patience=patience),
    )
    pool.patience = acquire_patience
    return await pool


async def connect(*where: Any, **options: Any) -> Any:
    """Connects as `asyncpg.connect`, but raises ConnectFailed, which `is_lost`, where no connection is to be had."""
    try:
        return await asyncpg.connect(*where, **options)
    except OSError as error:  # TimeoutError is one
        raise ConnectFailed(str(error) or type(error).__name__) from error


def connect_options(*, pgbouncer: bool = False, patience: float | None = STATEMENT_SECONDS) -> dict[str, Any]:
    """Returns options of `asyncpg.connect` that all our connections share.

    patience: longest wait for a statement, seconds; None for migrations and builders of indexes, which take their time.
    """
    options: dict[str, Any] = {"timeout": _CONNECT_SECONDS, "command_timeout": patience}
    if pgbouncer:
        # It refuses start-up parameters that it does not know.
        return options | {"statement_cache_size": 0}
    # jit costs more than it gains on statements that take a millisecond.
    settings = {"jit": "off", **_SERVER_SIDE}
    if patience is not None:
        # The server ends a statement a little after we gave it up, and a transaction whose owner froze.
        settings["statement_timeout"] = f"{int((patience + 5) * 1_000)}"
        settings["idle_in_transaction_session_timeout"] = f"{int(patience * 1_000)}"
    return options | {"server_settings": settings}


async def set_codecs(connection: asyncpg.Connection) -> None:
    """Makes json and jsonb Python data by orjson."""
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


def is_lost(error: BaseException | None) -> bool:
    """Returns whether it says that the database cannot be reached: there is no connection, it broke, or the database
    stops.

    In the driver's words or in SQLAlchemy's.
    """
    wrapped = getattr(error, "orig", None)
    if wrapped is not None:
        error = wrapped.__cause__
    # A DataError is an InterfaceError and a ValueError: a value that is not of its column's type, which is a bug.
    return isinstance(error, _LOST) and not isinstance(error, ValueError)


@asynccontextmanager
async def database_guard(whose: str) -> AsyncIterator[None]:
    """Raises Unavailable where work in this block cannot reach the database of `whose` ("the tool runner")."""
    try:
        yield
    except Exception as error:
        if not is_lost(error):
            raise
        # What the driver says names hosts and roles, and is for the log alone.
        raise Unavailable(f"the database of {whose} cannot be reached now; try again") from error


def without_password(url: str) -> str:
    """Returns `url` as it may be shown."""
    return re.sub(r"(password=)[^&]*", r"\1***", re.sub(r"(://[^:@/]*):.*@", r"\1@", url))


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
