"""Postgres for the turn path: asyncpg pools, and waiting for a database to come up.

All SQL names its schema; nothing sets session state (`SET LOCAL` only), so a connection needs no reset when
it is returned, which saves a round trip each time, and PgBouncer in transaction mode may stand between.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson

from services.common.errors import Unavailable
from services.common.settings import SettingsError
from services.common.statement_counter import ConnectionCounter, CountingStatement
from services.common.statement_counter import StatementCounter as StatementCounter

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


class Connection(asyncpg.Connection):  # type: ignore[misc]
    """An asyncpg connection that is returned to its pool without a reset query, and can be counted."""

    __slots__ = ("counted",)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.counted: ConnectionCounter | None = None

    def get_reset_query(self) -> str:
        """Returns none: see the module."""
        return ""

    async def prepare(self, query: str, **options: Any) -> Any:
        """Prepares as asyncpg does, and counts here, because asyncpg's query log misses such statements."""
        statement = await super().prepare(query, **options)
        return statement if self.counted is None else CountingStatement(statement, query, self.counted)

    def count(self, counter: StatementCounter) -> None:
        """Tells `counter` of every statement from now on; call it outside of a transaction."""
        self.counted = ConnectionCounter(counter)
        self.add_query_logger(lambda record: self.counted.sent(record.query))


async def open_pool(
    url: str,
    *,
    size: int = 10,
    idle: int = 1,
    pgbouncer: bool = False,
    counter: StatementCounter | None = None,
    init: Init | None = None,
) -> asyncpg.Pool:
    """Returns a pool of at most `size` connections; `idle` open at once, further ones close after 5 idle minutes.

    jsonb and json are Python data by orjson (give `orjson.Fragment(text)` for JSON that is already
    serialized), uuid is `uuid.UUID`. With `pgbouncer` no prepared statement is kept (transaction mode) and
    `jit` must be off for the role. init: a coroutine function run on each new connection, for further codecs.
    Raises what `wait_for_database` explains; call that first.
    """

    async def prepare(connection: Connection) -> None:
        await set_codecs(connection)
        if init is not None:
            await init(connection)
        if counter is not None:
            connection.count(counter)

    return await asyncpg.create_pool(
        url,
        connect=connect,
        min_size=min(idle, size),
        max_size=size,
        max_inactive_connection_lifetime=300.0,
        connection_class=Connection,
        init=prepare,
        **connect_options(pgbouncer=pgbouncer),
    )


async def connect(*where: Any, **options: Any) -> Any:
    """Connects as `asyncpg.connect`, but raises ConnectFailed, which `is_lost`, where no connection is to be had."""
    try:
        return await asyncpg.connect(*where, **options)
    except OSError as error:  # TimeoutError is one
        raise ConnectFailed(str(error) or type(error).__name__) from error


def connect_options(*, pgbouncer: bool = False) -> dict[str, Any]:
    """Returns options of `asyncpg.connect` that all our connections share."""
    if pgbouncer:
        # It refuses start-up parameters that it does not know.
        return {"statement_cache_size": 0, "timeout": 10.0}
    # jit costs more than it gains on statements that take a millisecond.
    return {"server_settings": {"jit": "off"}, "timeout": 10.0}


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
