"""Usage rows in Postgres (schema llm_gateway)."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter

import asyncpg

from services.llm_gateway.ports import StoreRefused, StoreUnavailable, UsageRow

_TYPES = {
    "organization_id": "uuid",
    "id": "uuid",
    "run_id": "uuid",
    "step_id": "uuid",
    "agent_id": "uuid",
    "kind": "text",
    "handle": "text",
    "provider_model": "text",
    "estimated": "boolean",
    "milliseconds": "integer",
    "created_at": "timestamptz",
}
_COLUMNS = [field.name for field in fields(UsageRow)]
# dataclasses.astuple copies every value deeply, which costs ten times as much.
_values = attrgetter(*_COLUMNS)
_ARRAYS = ", ".join(f"${n}::{_TYPES.get(name, 'bigint')}[]" for n, name in enumerate(_COLUMNS, 1))
_INSERT = (
    f"INSERT INTO llm_gateway.usage ({', '.join(_COLUMNS)}) SELECT * FROM unnest({_ARRAYS})"
    " ON CONFLICT (organization_id, id) DO NOTHING"
)
_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
)


class PostgresUsageStore:
    """A UsageStore; a batch is one statement."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """See UsageStore.write."""
        columns = zip(*map(_values, rows), strict=True)
        try:
            await self._pool.execute(_INSERT, *map(list, columns))
        except _AWAY as error:
            raise StoreUnavailable(str(error) or type(error).__name__) from error
        except asyncpg.PostgresError as error:
            raise StoreRefused(str(error)) from error
