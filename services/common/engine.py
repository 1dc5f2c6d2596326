"""SQLAlchemy engines, for lists and administration. Importing it costs 24 MB; the turn path does without."""

from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from services.common.database import ACQUIRE_SECONDS, STATEMENT_SECONDS, Connection, connect, connect_options
from services.common.statement_counter import StatementCounter


def make_engine(
    url: str,
    *,
    size: int = 5,
    pgbouncer: bool = False,
    patience: float | None = STATEMENT_SECONDS,
    counter: StatementCounter | None = None,
) -> AsyncEngine:
    """Returns an engine of at most `size` connections, with the URL of `database.open_pool`; connects on first use.

    jsonb is Python data by orjson. `await engine.dispose()` closes it. patience: see `database.connect_options`.
    """

    async def create() -> Any:
        options = connect_options(pgbouncer=pgbouncer, patience=patience)
        connection = await connect(url, connection_class=Connection, **options)
        if counter is not None:
            connection.count(counter)
        return connection

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=create,
        pool_size=size,
        max_overflow=0,
        pool_timeout=ACQUIRE_SECONDS,
        pool_pre_ping=True,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )
