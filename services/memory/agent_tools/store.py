"""Results of tool calls on Postgres."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core import records
from services.common.core.records import columns, names_in
from services.common.core.statements import Statement
from services.memory.agent_tools.fences import FENCE, FENCED, FORGET_FENCES, owner, run_fenced
from services.memory.agent_tools.model import CallRecord, EditContext, EditLookup
from services.memory.agent_tools.tables import applied_calls
from services.memory.blocks.model import Block
from services.memory.blocks.store.rows import BLOCK_COLUMNS, block_of_row
from services.memory.core.errors import DuplicateCall
from services.memory.sql.columns import select_list
from services.memory.sql.rows import Row

RECORD_COLUMNS = select_list("c", CallRecord, applied_calls)
# The inner query stays as it is written, so that each look is a few steps down indexes, however many there are. Ids
# come as texts: about arrays of other types a new connection first has to ask.
_VIEWS = f"""
SELECT found.*,
    ARRAY(
        SELECT k.label FROM memory.agent_blocks k WHERE k.organization_id = $1 AND k.agent_id = look.agent_id
        ORDER BY k.position
    ) AS labels, {FENCED.format("$1", "look.run_id", "look.fence")} AS fenced
FROM unnest(
    $2::text[]::uuid[], $3::text[], $4::text[], $5::text[]::uuid[], $6::text[]::uuid[], $7::text[]::bigint[]
) WITH ORDINALITY AS look (agent_id, call_key, label, conversation_id, run_id, fence, place)
LEFT JOIN LATERAL (
    SELECT {RECORD_COLUMNS}, {BLOCK_COLUMNS}
    FROM (SELECT $1::uuid AS organization_id) o
    LEFT JOIN memory.applied_calls c ON c.organization_id = o.organization_id AND c.call_key = look.call_key
    LEFT JOIN memory.agent_blocks a
        ON a.organization_id = o.organization_id AND a.agent_id = look.agent_id AND a.label = look.label
    LEFT JOIN memory.conversation_blocks i
        ON i.organization_id = a.organization_id AND i.conversation_id = look.conversation_id AND i.label = a.label
        AND i.agent_id = look.agent_id
    LEFT JOIN memory.blocks b ON b.organization_id = a.organization_id AND b.id = coalesce(i.block_id, a.block_id)
    OFFSET 0
) found ON true
ORDER BY look.place
"""
_FIND = f"SELECT {RECORD_COLUMNS} FROM memory.applied_calls c WHERE c.organization_id = $1 AND c.call_key = $2"
_NAMES = names_in(CallRecord, applied_calls.c.keys())
_RECORD = Statement(f"""
WITH refused AS (SELECT {FENCED.format(":organization_id", ":run_id", ":fence")} AS fenced), kept AS (
    INSERT INTO memory.applied_calls (organization_id, {", ".join(_NAMES)})
    SELECT :organization_id, {", ".join(f":{name}" for name in _NAMES)} FROM refused WHERE NOT fenced
    ON CONFLICT (organization_id, call_key) DO NOTHING
    RETURNING call_key
)
SELECT fenced, EXISTS (SELECT FROM kept) AS kept FROM refused
""")
_BLOCKS = f"SELECT {BLOCK_COLUMNS} FROM memory.blocks b WHERE b.organization_id = $1 AND b.id = ANY($2)"
_FORGET = """
DELETE FROM memory.applied_calls WHERE (organization_id, call_key) IN (
    SELECT organization_id, call_key FROM memory.applied_calls
    WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT $2)
"""


class PostgresCalls:
    """`CallStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def views(self, organization_id: UUID, looks: Sequence[EditLookup]) -> list[EditContext]:
        questions = zip(
            *(
                (
                    str(look.agent_id),
                    look.call_key,
                    look.label,
                    id_text(look.conversation_id),
                    id_text(look.owner[0]),
                    str(look.owner[1]),
                )
                for look in looks
            ),
            strict=True,
        )
        rows = await self._pool.fetch(_VIEWS, organization_id, *questions)
        return [
            EditContext(
                record=record_of_row(row),
                labels=tuple(row["labels"]),
                block=None if row["id"] is None else block_of_row(row),
                fenced=row["fenced"],
            )
            for row in rows
        ]

    async def find(self, organization_id: UUID, call_key: str) -> CallRecord | None:
        row = await self._pool.fetchrow(_FIND, organization_id, call_key)
        return None if row is None else record_of_row(row)

    async def record(self, organization_id: UUID, record: CallRecord) -> CallRecord:
        if await _insert(self._pool, organization_id, record):
            return record
        earlier = await self.find(organization_id, record.call_key)
        return record if earlier is None else earlier

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        await self._pool.execute(FENCE, organization_id, run_id, fence)

    async def blocks(self, organization_id: UUID, block_ids: Sequence[UUID]) -> list[Block]:
        rows = await self._pool.fetch(_BLOCKS, organization_id, block_ids)
        return [block_of_row(row) for row in rows]

    async def forget(self, older_than: timedelta, limit: int) -> int:
        done: list[str] = [
            await self._pool.execute(statement, older_than, limit) for statement in (_FORGET, FORGET_FENCES)
        ]
        return max(int(each.rpartition(" ")[2]) for each in done)


def id_text(value: UUID | None) -> str | None:
    """Returns an id in an array of texts."""
    return None if value is None else str(value)


async def keep_record(connection: Any, organization_id: UUID, record: CallRecord) -> None:
    """Stores a result within the caller's transaction. A second call waits here, and raises DuplicateCall; that of an
    earlier owner of the run raises FailedPrecondition (RUN_FENCED).
    """
    if not await _insert(connection, organization_id, record):
        raise DuplicateCall


async def _insert(executor: Any, organization_id: UUID, record: CallRecord) -> bool:
    run_id, fence = owner()
    statement = _RECORD.bind(organization_id=organization_id, run_id=run_id, fence=fence, **columns(record, _NAMES))
    row = await executor.fetchrow(*statement)
    if row["fenced"]:
        raise run_fenced()
    return bool(row["kept"])


def record_of_row(row: Row) -> CallRecord | None:
    """Returns the record in a row with RECORD_COLUMNS; None where an outer join found no call."""
    return None if row["call_key"] is None else records.record(CallRecord, row)
