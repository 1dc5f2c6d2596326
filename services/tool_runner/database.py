"""The database where it can be reached, and where not: Unavailable, so that who asks does so again."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.common import database


def database_reached() -> AbstractAsyncContextManager[None]:
    """Returns what is done within needs the database. Raises Unavailable."""
    return database.database_guard("the tool runner")


class DatabasePool:
    """A pool for single statements. Each raises Unavailable, where a driver's error would be a fault of ours."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        """Returns all rows."""
        async with database_reached():
            return list(await self._pool.fetch(statement, *values))

    async def fetchrow(self, statement: str, *values: object) -> Any:
        """Returns the first row, or None."""
        async with database_reached():
            return await self._pool.fetchrow(statement, *values)

    async def fetchval(self, statement: str, *values: object) -> Any:
        """Returns its first value, or None."""
        async with database_reached():
            return await self._pool.fetchval(statement, *values)

    async def execute(self, statement: str, *values: object) -> None:
        """Executes it for its effect."""
        async with database_reached():
            await self._pool.execute(statement, *values)


class Where:
    """Conditions that hold together, of one tenant; `parameters` are in the order of their numbers."""

    def __init__(self, organization_id: UUID) -> None:
        self.parameters: list[Any] = [organization_id]
        self._conditions = ["organization_id = $1"]

    def add(self, condition: str, *values: object) -> None:
        """Adds a condition, which has a {} for each value."""
        first = len(self.parameters) + 1
        self._conditions.append(condition.format(*(f"${first + place}" for place in range(len(values)))))
        self.parameters += values

    def before(self, time_column: str, name_column: str, place: tuple[datetime, object]) -> None:
        """Adds the condition for rows after a place in an order by both columns, newest first."""
        self.add(f"({time_column}, {name_column}) < ({{}}, {{}})", *place)

    def text(self) -> str:
        """Returns the conditions, for after WHERE."""
        return " AND ".join(self._conditions)
