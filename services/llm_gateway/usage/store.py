"""Usage rows in Postgres (schema llm_gateway), their sums and their end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

import asyncpg

from services.common.database import is_lost
from services.llm_gateway.usage.model import (
    MOST_ROWS,
    Group,
    Report,
    ReportQuery,
    Row,
    StoreRefused,
    StoreUnavailable,
    Totals,
    UsageRow,
)

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
def store_errors() -> Iterator[None]:
    """Turns errors of the database into StoreUnavailable or StoreRefused."""
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
        with store_errors():
            await self._pool.execute(_INSERT, *map(list, columns))


_SUMS = """
    count(*) AS requests,
    coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
    coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens,
    coalesce(sum(cached_input_tokens), 0)::bigint AS cached_input_tokens,
    coalesce(sum(cache_write_tokens), 0)::bigint AS cache_write_tokens,
    coalesce(sum(reasoning_tokens), 0)::bigint AS reasoning_tokens,
    count(*) FILTER (WHERE estimated) AS estimated_requests,
    coalesce(sum(cost_nanos_usd), 0)::bigint AS cost_nanos_usd,
    count(*) FILTER (WHERE cost_nanos_usd IS NULL) AS unpriced_requests
"""
_TOTALS = tuple(Totals.__dataclass_fields__)
_VALUES = {
    Group.HOUR: "date_trunc('hour', created_at, 'UTC')",
    Group.DAY: "date_trunc('day', created_at, 'UTC')",
    Group.MODEL: "handle",
    Group.PROVIDER: "split_part(handle, '/', 1)",
    Group.AGENT: "agent_id",
    Group.KIND: "kind",
}
_TIMES = (Group.HOUR, Group.DAY)
_OF_QUERY = """
    organization_id = $1 AND created_at >= $2 AND created_at < $3
    AND ($4::uuid IS NULL OR agent_id = $4) AND ($5 = '' OR handle = $5) AND ($6 = '' OR kind = $6)
"""
_OF_RUN = "organization_id = $1 AND run_id = $2"
_BATCH = 1_000
# From one tenant to the next along the index: their number of steps, not that of the rows.
_TENANTS = """
WITH RECURSIVE tenant AS (
    (SELECT organization_id AS id FROM llm_gateway.usage ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT organization_id FROM llm_gateway.usage WHERE organization_id > tenant.id
        ORDER BY organization_id LIMIT 1
    ) FROM tenant WHERE tenant.id IS NOT NULL
)
SELECT id FROM tenant WHERE id IS NOT NULL
"""
_FORGET = f"""
DELETE FROM llm_gateway.usage WHERE organization_id = $1 AND id = ANY(ARRAY(
    SELECT id FROM llm_gateway.usage WHERE organization_id = $1 AND created_at < $2
    ORDER BY created_at LIMIT {_BATCH} FOR UPDATE SKIP LOCKED
)) RETURNING 1
"""


class PostgresUsageReports:
    """A UsageReports; each report is one statement."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def of_run(self, organization_id: UUID, run_id: UUID) -> Report:
        """See UsageReports.of_run."""
        return await self._report((Group.MODEL,), _OF_RUN, organization_id, run_id)

    async def report(self, organization_id: UUID, query: ReportQuery) -> Report:
        """See UsageReports.report."""
        arguments = (query.since, query.until, query.agent_id, query.handle, query.kind)
        return await self._report(tuple(query.group_by), _OF_QUERY, organization_id, *arguments)

    async def forget_before(self, moment: datetime) -> int:
        """See UsageReports.forget_before: at most 1,000 rows of each tenant."""
        with store_errors():
            tenants = await self._pool.fetch(_TENANTS)
            return sum([len(await self._pool.fetch(_FORGET, tenant["id"], moment)) for tenant in tenants])

    async def _report(self, groups: tuple[Group, ...], condition: str, *values: Any) -> Report:
        with store_errors():
            sums = await self._pool.fetch(_statement(groups, condition), *values)
        # The sums over everything are always first.
        total, *rows = sums
        rows_of_report = [Row([row[f"g{n}"] for n in range(len(groups))], _totals(row)) for row in rows[:MOST_ROWS]]
        return Report(_totals(total), rows_of_report if groups else [Row((), _totals(total))], len(rows) > MOST_ROWS)


def _statement(groups: tuple[Group, ...], condition: str) -> str:
    """Returns the statement of sums by group and over all of it, in one pass over the rows."""
    names = [f"g{n}" for n in range(len(groups))]
    values = "".join(f", {_VALUES[group]} AS {name}" for group, name in zip(groups, names, strict=True))
    columns = ", ".join(names)
    overall = f"{columns}, grouping({columns})" if groups else "1"
    sets = f"(), ({columns})" if groups else "()"
    times = [name for group, name in zip(groups, names, strict=True) if group in _TIMES]
    order = ", ".join([*times, "cost_nanos_usd DESC", "requests DESC", *names])
    return f"""
        SELECT * FROM (
            SELECT {overall} AS overall, {_SUMS}
            FROM (SELECT *{values} FROM llm_gateway.usage WHERE {condition}) AS asked
            GROUP BY GROUPING SETS ({sets})
        ) AS summed ORDER BY overall DESC, {order} LIMIT {MOST_ROWS + 2}
    """


def _totals(row: asyncpg.Record) -> Totals:
    return Totals(**{name: row[name] for name in _TOTALS})
