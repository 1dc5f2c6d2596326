"""Results of tool calls on Postgres."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg

from services.memory.agent_tools.model import CallRecord, EditContext, EditLookup
from services.memory.blocks.model import Block
from services.memory.blocks.store.rows import BLOCK_COLUMNS, block_of_row
from services.memory.sql.rows import Row

RECORD_COLUMNS = (
    "c.call_key, c.agent_id AS call_agent_id, c.tool_name, c.arguments_hash, c.tool_return, c.is_error, "
    "c.changed_block_ids"
)
# The inner query stays as it is written, so that each look is a few steps down indexes, however many there are. Ids
# come as texts: about arrays of other types a new connection first has to ask.
_VIEWS = f"""
SELECT found.*,
    ARRAY(
        SELECT k.label FROM memory.agent_blocks k WHERE k.organization_id = $1 AND k.agent_id = look.agent_id
        ORDER BY k.position
    ) AS labels
FROM unnest($2::text[]::uuid[], $3::text[], $4::text[], $5::text[]::uuid[]) WITH ORDINALITY
    AS look (agent_id, call_key, label, conversation_id, place)
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
RECORD = """
INSERT INTO memory.applied_calls (
    organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error, changed_block_ids)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (organization_id, call_key) DO NOTHING
RETURNING call_key
"""
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
        columns = zip(
            *((str(look.agent_id), look.call_key, look.label, id_text(look.conversation_id)) for look in looks),
            strict=True,
        )
        rows = await self._pool.fetch(_VIEWS, organization_id, *columns)
        return [
            EditContext(
                record=record_of_row(row),
                labels=tuple(row["labels"]),
                block=None if row["id"] is None else block_of_row(row),
            )
            for row in rows
        ]

    async def find(self, organization_id: UUID, call_key: str) -> CallRecord | None:
        row = await self._pool.fetchrow(_FIND, organization_id, call_key)
        return None if row is None else record_of_row(row)

    async def record(self, organization_id: UUID, record: CallRecord) -> CallRecord:
        if await self._pool.fetchrow(RECORD, *record_values(organization_id, record)) is not None:
            return record
        earlier = await self.find(organization_id, record.call_key)
        return record if earlier is None else earlier

    async def blocks(self, organization_id: UUID, block_ids: Sequence[UUID]) -> list[Block]:
        rows = await self._pool.fetch(_BLOCKS, organization_id, block_ids)
        return [block_of_row(row) for row in rows]

    async def forget(self, older_than: timedelta, limit: int) -> int:
        done: str = await self._pool.execute(_FORGET, older_than, limit)
        return int(done.rpartition(" ")[2])


def id_text(value: UUID | None) -> str | None:
    """An id in an array of texts."""
    return None if value is None else str(value)


def record_values(organization_id: UUID, record: CallRecord) -> tuple[object, ...]:
    """The parameters of RECORD."""
    return (
        organization_id,
        record.call_key,
        record.agent_id,
        record.tool_name,
        record.arguments_hash,
        record.tool_return,
        record.is_error,
        record.changed_block_ids,
    )


def record_of_row(row: Row) -> CallRecord | None:
    """A row with RECORD_COLUMNS; None where an outer join found no call."""
    if row["call_key"] is None:
        return None
    return CallRecord(
        call_key=row["call_key"],
        agent_id=row["call_agent_id"],
        tool_name=row["tool_name"],
        arguments_hash=row["arguments_hash"],
        tool_return=row["tool_return"],
        is_error=row["is_error"],
        changed_block_ids=tuple(row["changed_block_ids"]),
    )
