"""Read-only transactions that begin in one message with their settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg


@asynccontextmanager
async def reading(pool: asyncpg.Pool, settings: str) -> AsyncIterator[Any]:
    """A connection within a transaction for which `settings` hold, which are SET LOCAL statements."""
    async with pool.acquire() as connection:
        await connection.execute(f"BEGIN READ ONLY; {settings}")
        try:
            yield connection
        finally:
            # Of what failed, it is a rollback.
            if not connection.is_closed():
                await connection.execute("COMMIT")
