"""The database where it can be reached, and where not: Unavailable, so that who asks does so again."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from services.common import database


def reached() -> AbstractAsyncContextManager[None]:
    """What is done within needs the database. Raises Unavailable."""
    return database.reached("the tool runner")


class Reached:
    """A pool for single statements. Each raises Unavailable, where a driver's error would be a fault of ours."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        """All rows."""
        async with reached():
            return list(await self._pool.fetch(statement, *values))

    async def fetchrow(self, statement: str, *values: object) -> Any:
        """The first row, or None."""
        async with reached():
            return await self._pool.fetchrow(statement, *values)

    async def fetchval(self, statement: str, *values: object) -> Any:
        """Its first value, or None."""
        async with reached():
            return await self._pool.fetchval(statement, *values)

    async def execute(self, statement: str, *values: object) -> None:
        """Nothing of it."""
        async with reached():
            await self._pool.execute(statement, *values)
