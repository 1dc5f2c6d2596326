"""Receipts and leases on Postgres. Every change names the state and owner it expects; no row means: lost it."""

import json
from collections.abc import Collection
from dataclasses import fields
from hashlib import sha256
from typing import Any
from uuid import UUID

import asyncpg

from services.common.context import current_or_none
from services.common.core.statements import Statement
from services.common.own_connection import OwnConnection
from services.tool_runner.core.model import NO_TOOL, Ending, Receipt, State
from services.tool_runner.database import DatabasePool, database_reached
from services.tool_runner.executions import rows
from services.tool_runner.executions.ports import CallId, OpenReceipt, Reservation
from services.tool_runner.executions.rows import FILES_OF_RECEIPT, RECEIPT_COLUMNS

# By the database's clock; four beats may be late or lost.
LEASE = "interval '2.5 seconds'"
_FORGOTTEN = "interval '1 day'"

_RESERVATION = tuple(field.name for field in fields(Reservation))
# Whether a later owner has the run: the tenant, the run and the fence of who asks.
_FENCED = """EXISTS (
    SELECT FROM tool_runner.run_fences o WHERE o.organization_id = {} AND o.run_id = {} AND o.fence > {})"""
_RESERVE = Statement(f"""
INSERT INTO tool_runner.receipts (organization_id, call_key, state, {", ".join(_RESERVATION)})
SELECT :organization_id, :call_key, {State.RESERVED:d}, {", ".join(f":{name}" for name in _RESERVATION)}
WHERE NOT {_FENCED.format(":organization_id", ":caller_run_id", ":fence")}
ON CONFLICT (organization_id, call_key) DO NOTHING
RETURNING call_key
""")
# A call that was cancelled before it came.
_FORESTALL = f"""
INSERT INTO tool_runner.receipts
    (organization_id, call_key, state, outcome, tool_return, tool_id, tool_version, arguments_hash, owner_id, run_id,
     ended_at)
VALUES ($1, $2, $3, $4, $5, '{NO_TOOL}', 0, '', '{NO_TOOL}', $6, clock_timestamp())
ON CONFLICT (organization_id, call_key) DO NOTHING
RETURNING call_key
"""
_FENCE = """
INSERT INTO tool_runner.run_fences (organization_id, run_id, fence) VALUES ($1, $2, $3)
ON CONFLICT (organization_id, run_id) DO UPDATE SET fence = greatest(run_fences.fence, excluded.fence)
"""
_IS_FENCED = f"SELECT {_FENCED.format('$1', '$2', '$3')}"
_READ = f"""
SELECT {RECEIPT_COLUMNS}, {FILES_OF_RECEIPT} AS files, EXISTS (
    SELECT FROM tool_runner.workers w
    WHERE w.id = r.owner_id AND w.beat_at > clock_timestamp() - {LEASE}) AS owner_alive
FROM tool_runner.receipts r
WHERE organization_id = $1 AND call_key = $2
"""
_TAKE_OVER = f"""
WITH taken AS (
    UPDATE tool_runner.receipts
    SET state = {State.RESERVED:d}, owner_id = $5, outcome = 0, tool_return = '', stdout = '', stderr = '',
        output_order = '', started_at = NULL, ended_at = NULL
    WHERE organization_id = $1 AND call_key = $2 AND state = $3 AND owner_id = $4
        AND NOT {_FENCED.format("$1", "$6", "$7")}
    RETURNING organization_id, call_key),
printed AS (DELETE FROM tool_runner.outputs WHERE (organization_id, call_key) IN (SELECT * FROM taken))
SELECT call_key FROM taken
"""
_START = f"""
UPDATE tool_runner.receipts
SET state = {State.STARTED:d}, started_at = clock_timestamp(), sandbox = $4, image = $5
WHERE organization_id = $1 AND call_key = $2 AND state = {State.RESERVED:d} AND owner_id = $3
RETURNING call_key
"""
_RELEASE = f"""
DELETE FROM tool_runner.receipts
WHERE organization_id = $1 AND call_key = $2 AND owner_id = $3 AND state IN ({State.RESERVED:d}, {State.STARTED:d})
"""
_END = Statement(f"""
WITH ended AS (
    UPDATE tool_runner.receipts
    SET state = :state, outcome = :outcome, result = :result, output_hash = :output_hash, tool_return = :tool_return,
        stdout = :stdout, stderr = :stderr, output_order = :output_order, block_edits = :block_edits,
        ended_at = clock_timestamp()
    WHERE organization_id = :organization_id AND call_key = :call_key AND owner_id = :owner_id
        AND state IN ({State.RESERVED:d}, {State.STARTED:d})
    RETURNING organization_id, {RECEIPT_COLUMNS}),
printed AS (
    DELETE FROM tool_runner.outputs
    WHERE (organization_id, call_key) IN (SELECT organization_id, call_key FROM ended)),
kept AS (
    INSERT INTO tool_runner.files (
        organization_id, id, name, size, sha256, content, call_key, agent_id, created_by_id)
    SELECT e.organization_id, f.id, f.name, length(f.content), encode(sha256(f.content), 'hex'), f.content,
        e.call_key, e.agent_id, f.created_by_id
    FROM ended e,
        unnest(:file_ids::uuid[], :file_names::text[], :file_contents::bytea[], :file_creators::uuid[])
            AS f (id, name, content, created_by_id)
    RETURNING id, name, size, sha256, call_key, agent_id, created_at)
SELECT ended.*, (SELECT jsonb_agg(to_jsonb(kept) ORDER BY kept.id) FROM kept) AS files FROM ended
""")
_REQUEST_CANCEL = """
UPDATE tool_runner.receipts SET cancel_requested = true WHERE organization_id = $1 AND call_key = $2
"""
_OPEN = f"""
SELECT organization_id, call_key, state, cancel_requested FROM tool_runner.receipts
WHERE owner_id = $1 AND state IN ({State.RESERVED:d}, {State.STARTED:d})
"""
_PURGE = """
WITH erased AS (
    DELETE FROM tool_runner.receipts WHERE organization_id = $1 AND agent_id = $2
    RETURNING organization_id, call_key),
printed AS (DELETE FROM tool_runner.outputs WHERE (organization_id, call_key) IN (SELECT * FROM erased)),
made AS (DELETE FROM tool_runner.files WHERE organization_id = $1 AND agent_id = $2)
SELECT count(*) FROM erased
"""
_BEAT = """
INSERT INTO tool_runner.workers (id, beat_at) VALUES ($1, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp()
"""
_RETIRE = f"DELETE FROM tool_runner.workers WHERE id = $1 OR beat_at < clock_timestamp() - {_FORGOTTEN}"


class PostgresReceipts:
    """`ports.ReceiptStore`. `beats`: what leases are beaten by; None: the pool."""

    def __init__(self, pool: asyncpg.Pool, beats: OwnConnection | None = None) -> None:
        self._pool = DatabasePool(pool)
        self._beats: Any = beats or pool

    async def reserve(self, call: CallId, reservation: Reservation) -> bool:
        values = {name: getattr(reservation, name) for name in _RESERVATION}
        run_id, fence = _caller()
        reserved = _RESERVE.bind(**_of(call), **values, caller_run_id=run_id, fence=fence)
        return await self._pool.fetchval(*reserved) is not None

    async def forestall(self, call: CallId, run_id: UUID, ending: Ending) -> bool:
        values = (ending.state, ending.outcome, ending.tool_return, run_id)
        return await self._pool.fetchval(_FORESTALL, *call, *values) is not None

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        await self._pool.execute(_FENCE, organization_id, run_id, fence)

    async def is_fenced(self, organization_id: UUID) -> bool:
        return bool(await self._pool.fetchval(_IS_FENCED, organization_id, *_caller()))

    async def read(self, call: CallId) -> Receipt | None:
        row = await self._pool.fetchrow(_READ, *call)
        return rows.receipt(row, owner_alive=row["owner_alive"]) if row else None

    async def take_over(self, call: CallId, receipt: Receipt, owner_id: UUID) -> bool:
        row = await self._pool.fetchval(_TAKE_OVER, *call, receipt.state, receipt.owner_id, owner_id, *_caller())
        return row is not None

    async def start(self, call: CallId, owner_id: UUID, sandbox: str, image: str) -> bool:
        return await self._pool.fetchval(_START, *call, owner_id, sandbox, image) is not None

    async def release(self, call: CallId, owner_id: UUID) -> None:
        await self._pool.execute(_RELEASE, *call, owner_id)

    async def end(self, call: CallId, owner_id: UUID, ending: Ending) -> Receipt | None:
        values = {
            "state": ending.state,
            "outcome": ending.outcome,
            "result": ending.result,
            "output_hash": sha256(ending.result.encode()).hexdigest() if ending.result else "",
            "tool_return": ending.tool_return,
            "stdout": ending.stdout,
            "stderr": ending.stderr,
            "output_order": _pairs(ending.output_order),
            "block_edits": _pairs(ending.block_edits),
            "file_ids": [file.id for file in ending.files],
            "file_names": [file.name for file in ending.files],
            "file_contents": [file.content for file in ending.files],
            "file_creators": [file.created_by_id for file in ending.files],
        }
        row = await self._pool.fetchrow(*_END.bind(**_of(call), owner_id=owner_id, **values))
        return rows.receipt(row) if row else None

    async def request_cancel(self, call: CallId) -> None:
        await self._pool.execute(_REQUEST_CANCEL, *call)

    async def open(self, owner_id: UUID) -> list[OpenReceipt]:
        return [
            OpenReceipt((row["organization_id"], row["call_key"]), State(row["state"]), row["cancel_requested"])
            for row in await self._pool.fetch(_OPEN, owner_id)
        ]

    async def purge(self, organization_id: UUID, agent_id: UUID) -> int:
        return int(await self._pool.fetchval(_PURGE, organization_id, agent_id))

    async def beat(self, owner_id: UUID) -> None:
        async with database_reached():
            await self._beats.execute(_BEAT, owner_id)

    async def retire(self, owner_id: UUID) -> None:
        await self._pool.execute(_RETIRE, owner_id)


def _caller() -> tuple[UUID | None, int]:
    """Returns the run and the fence of its owner for whom a call is made."""
    caller = current_or_none()
    return (None, 0) if caller is None else (caller.run_id, caller.fence)


def _of(call: CallId) -> dict[str, object]:
    return dict(zip(("organization_id", "call_key"), call, strict=True))


def _pairs(pairs: Collection[tuple[object, object]]) -> str:
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":")) if pairs else ""
