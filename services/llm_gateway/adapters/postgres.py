"""Usage rows in Postgres (schema llm_gateway), and what failures of the database mean here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter

import asyncpg

from services.common.database import is_lost
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
# Only rows that are new count towards the hours. In order, so that two replicas never wait for one another.
_INSERT = f"""
WITH written AS (
    INSERT INTO llm_gateway.usage ({", ".join(_COLUMNS)}) SELECT * FROM unnest({_ARRAYS})
    ON CONFLICT (organization_id, id) DO NOTHING
    RETURNING organization_id, date_trunc('hour', created_at, 'UTC') AS hour,
        prompt_tokens + completion_tokens AS tokens, coalesce(cost_nanos_usd, 0) AS cost
)
INSERT INTO llm_gateway.usage_hours AS kept (organization_id, hour, requests, tokens, cost_nanos_usd)
SELECT organization_id, hour, count(*), sum(tokens)::bigint, sum(cost)::bigint
FROM written GROUP BY organization_id, hour ORDER BY organization_id, hour
ON CONFLICT (organization_id, hour) DO UPDATE SET
    requests = kept.requests + excluded.requests,
    tokens = kept.tokens + excluded.tokens,
    cost_nanos_usd = kept.cost_nanos_usd + excluded.cost_nanos_usd
"""


@contextmanager
def failures_told() -> Iterator[None]:
    """What the database raises inside, as StoreUnavailable or StoreRefused."""
    try:
        yield
    except Exception as error:
        if is_lost(error):
            raise StoreUnavailable(str(error) or type(error).__name__) from error
        if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError):
            raise StoreRefused(str(error)) from error
        raise


class PostgresUsageStore:
    """A UsageStore; a batch is one statement."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """See UsageStore.write."""
        columns = zip(*map(_values, rows), strict=True)
        with failures_told():
            await self._pool.execute(_INSERT, *map(list, columns))
