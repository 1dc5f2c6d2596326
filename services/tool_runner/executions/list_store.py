"""Pages of receipts, and the sweep of old ones, on Postgres."""

from datetime import timedelta
from uuid import UUID

import asyncpg

from services.common.core.paging import PageBy, PageOf, cut
from services.tool_runner.core.model import Receipt, State
from services.tool_runner.database import DatabasePool, Where
from services.tool_runner.executions import rows
from services.tool_runner.executions.model import ReceiptFilter, place_of, token_of
from services.tool_runner.executions.rows import LISTED_COLUMNS
from services.tool_runner.executions.store import LEASE

_SWEEP = f"""
WITH old AS (
    SELECT organization_id, call_key FROM tool_runner.receipts r
    WHERE reserved_at < clock_timestamp() - $1::interval
        AND (state IN ({State.DONE:d}, {State.UNKNOWN:d}) OR NOT EXISTS (
            SELECT FROM tool_runner.workers w
            WHERE w.id = r.owner_id AND w.beat_at > clock_timestamp() - {LEASE}))
    LIMIT $2 FOR UPDATE SKIP LOCKED),
erased AS (
    DELETE FROM tool_runner.receipts WHERE (organization_id, call_key) IN (SELECT * FROM old)
    RETURNING organization_id, call_key),
printed AS (DELETE FROM tool_runner.outputs WHERE (organization_id, call_key) IN (SELECT * FROM erased)),
made AS (DELETE FROM tool_runner.files WHERE (organization_id, call_key) IN (SELECT * FROM erased))
SELECT count(*) FROM erased
"""
_SWEEP_UPLOADS = """
WITH old AS (
    SELECT organization_id, id FROM tool_runner.files
    WHERE created_at < clock_timestamp() - $1::interval AND call_key IS NULL
    LIMIT $2 FOR UPDATE SKIP LOCKED),
erased AS (DELETE FROM tool_runner.files WHERE (organization_id, id) IN (SELECT * FROM old) RETURNING 1)
SELECT count(*) FROM erased
"""
_TIDY = f"""
DELETE FROM tool_runner.outputs o
WHERE NOT EXISTS (
    SELECT FROM tool_runner.receipts r
    WHERE r.organization_id = o.organization_id AND r.call_key = o.call_key AND r.state = {State.STARTED:d})
"""
# A run that was taken over so long ago has ended.
_FORGET_FENCES = "DELETE FROM tool_runner.run_fences WHERE created_at < clock_timestamp() - interval '30 days'"


class PostgresReceiptLists:
    """`ports.ReceiptLists`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def receipts(self, organization_id: UUID, filters: ReceiptFilter) -> PageOf[Receipt]:
        where = _where(organization_id, filters)
        scanned = await self._pool.fetch(
            f"SELECT {LISTED_COLUMNS} FROM tool_runner.receipts WHERE {where.text()}"
            f" ORDER BY reserved_at DESC, call_key DESC LIMIT {filters.size + 1:d}",
            *where.parameters,
        )
        page = cut(scanned, PageBy(filters.size), lambda row: token_of(row["reserved_at"], row["call_key"]))
        return PageOf(tuple(map(rows.receipt_summary, page.items)), page.next_token)


class PostgresRetention:
    """`ports.Retention`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def sweep(self, age: timedelta, most: int) -> int:
        receipts = await self._pool.fetchval(_SWEEP, age, most)
        return int(receipts) + int(await self._pool.fetchval(_SWEEP_UPLOADS, age, most))

    async def tidy(self) -> None:
        await self._pool.execute(_TIDY)
        await self._pool.execute(_FORGET_FENCES)


def _where(organization_id: UUID, filters: ReceiptFilter) -> Where:
    where = Where(organization_id)
    for column in ("agent_id", "run_id", "tool_id"):
        if (value := getattr(filters, column)) is not None:
            where.add(f"{column} = {{}}", value)
    if filters.states:
        where.add("state = ANY({}::smallint[])", filters.states)
    if filters.outcomes:
        where.add("outcome = ANY({}::smallint[])", filters.outcomes)
    if filters.since is not None:
        where.add("reserved_at >= {}", filters.since)
    if filters.until is not None:
        where.add("reserved_at < {}", filters.until)
    if filters.token:
        where.before("reserved_at", "call_key", place_of(filters.token))
    return where
