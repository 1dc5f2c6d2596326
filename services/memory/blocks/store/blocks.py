"""Blocks, history and attachments on Postgres: the turn path, with prepared statements."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.statements import Statement
from services.common.errors import Aborted, AlreadyExists, NotFound
from services.memory.agent_tools.model import ValueChange
from services.memory.blocks.model import (
    Block,
    BlockById,
    BlockByLabel,
    BlockDraft,
    BlockKey,
    Operation,
    Origin,
    Restoration,
)
from services.memory.blocks.store.commits import commit_block, commit_values, label_taken
from services.memory.blocks.store.rows import BLOCK_COLUMNS, SETTINGS, block_of_row
from services.memory.blocks.tables import blocks
from services.memory.sql.columns import sql_type

_BY_ID = f"SELECT {BLOCK_COLUMNS} FROM memory.blocks b WHERE b.organization_id = $1 AND b.id = $2"
_BY_LABEL = f"""
SELECT {BLOCK_COLUMNS}
FROM memory.agent_blocks a
JOIN memory.blocks b ON b.organization_id = a.organization_id AND b.id = a.block_id
WHERE a.organization_id = $1 AND a.agent_id = $2 AND a.label = $3
"""

_NAMES = ("id", *SETTINGS)
_COLUMNS = [blocks.c[name] for name in _NAMES]
_CREATE = Statement(f"""
WITH created AS (
    INSERT INTO memory.blocks (
        organization_id, {", ".join(column.name for column in _COLUMNS)}, created_by_id, last_updated_by_id)
    SELECT :organization_id, {", ".join(f'd."{name}"' for name in _NAMES)}, :actor_id, :actor_id
    FROM jsonb_to_recordset(:drafts) AS d ({", ".join(f'"{column.key}" {sql_type(column)}' for column in _COLUMNS)})
    ON CONFLICT (organization_id, id) DO NOTHING
    RETURNING *
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key)
    SELECT organization_id, id, version, label, value, char_limit, description, metadata,
        {Operation.CREATE:d}, :actor_id, :agent_id, :run_id, :step_id, :call_key
    FROM created
)
SELECT {BLOCK_COLUMNS} FROM created b
""")

# The first version says what a block was created as, whatever became of it.
_FIRST = """
SELECT label, value, char_limit, description, metadata FROM memory.block_history
WHERE organization_id = $1 AND block_id = $2 AND version = 1
"""

_ATTACH = """
INSERT INTO memory.agent_blocks (organization_id, agent_id, block_id, label, position, created_with_agent)
SELECT $1, $2, b.id, b.label, wanted.place + coalesce(
        (SELECT max(position) FROM memory.agent_blocks WHERE organization_id = $1 AND agent_id = $2), 0), $4
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN memory.blocks b ON b.organization_id = $1 AND b.id = wanted.id
ON CONFLICT (organization_id, agent_id, block_id) DO NOTHING
RETURNING block_id
"""
# Those of some ids that no block has.
MISSING = """
SELECT wanted.id FROM unnest($2::uuid[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM memory.blocks b WHERE b.organization_id = $1 AND b.id = wanted.id)
"""


class PostgresBlocks:
    """`BlockStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def get(self, organization_id: UUID, key: BlockKey) -> Block:
        match key:
            case BlockById(block_id):
                row = await self._pool.fetchrow(_BY_ID, organization_id, block_id)
                missing = f"Block block-{block_id} not found"
            case BlockByLabel(agent_id, label):
                row = await self._pool.fetchrow(_BY_LABEL, organization_id, agent_id, label)
                missing = f"Block with label {label!r} not found for agent agent-{agent_id}"
        if row is None:
            raise NotFound(missing, reason="BLOCK_NOT_FOUND")
        return block_of_row(row)

    async def create(self, organization_id: UUID, user_id: UUID, draft: BlockDraft) -> Block:
        async with self._pool.acquire() as connection:
            created = await create_blocks(connection, organization_id, Origin(actor_id=user_id), [draft])
        assert draft.id is not None
        return created[0] if created else await self.get(organization_id, BlockById(draft.id))

    async def commit(
        self,
        organization_id: UUID,
        after: Block,
        operation: Operation,
        origin: Origin,
        restored: Restoration | None = None,
    ) -> Block:
        return await commit_block(self._pool, organization_id, after, operation, origin, restored)

    async def commit_values(self, organization_id: UUID, changes: Sequence[ValueChange]) -> list[list[Block] | None]:
        return await commit_values(self._pool, organization_id, changes)

    async def delete(self, organization_id: UUID, block_id: UUID) -> None:
        gone = await self._pool.fetchrow(
            "DELETE FROM memory.blocks WHERE organization_id = $1 AND id = $2 RETURNING id",
            organization_id,
            block_id,
        )
        if gone is None:
            raise no_such_block(block_id)

    async def attach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        async with self._pool.acquire() as connection:
            await attach_blocks(connection, organization_id, agent_id, [block_id], created_with_agent=False)

    async def detach(self, organization_id: UUID, agent_id: UUID, block_id: UUID) -> None:
        gone = await self._pool.fetchrow(
            "DELETE FROM memory.agent_blocks WHERE organization_id = $1 AND agent_id = $2 AND block_id = $3"
            " RETURNING block_id",
            organization_id,
            agent_id,
            block_id,
        )
        if gone is None:
            raise NotFound(
                f"Block block-{block_id} is not attached to agent agent-{agent_id}",
                reason="BLOCK_NOT_ATTACHED",
            )

    async def agents_of(self, organization_id: UUID, block_id: UUID) -> list[UUID]:
        rows = await self._pool.fetch(
            "SELECT agent_id FROM memory.agent_blocks WHERE organization_id = $1 AND block_id = $2"
            " ORDER BY attached_at, agent_id",
            organization_id,
            block_id,
        )
        return [row["agent_id"] for row in rows]


async def create_blocks(
    connection: Any, organization_id: UUID, origin: Origin, drafts: Sequence[BlockDraft]
) -> list[Block]:
    """Creates blocks with their first version; leaves out those created before with the same content.

    Raises AlreadyExists (BLOCK_ID_TAKEN) for another content.
    """
    values = [asdict(draft) for draft in drafts]
    rows = await connection.fetch(*_CREATE.bind(organization_id=organization_id, drafts=values, **asdict(origin)))
    created = {row["id"] for row in rows}
    for draft in drafts:
        if draft.id not in created:
            first = await connection.fetchrow(_FIRST, organization_id, draft.id)
            same = (draft.label, draft.value, draft.limit, draft.description, draft.metadata)
            if first is None or tuple(first) != same:
                raise AlreadyExists(f"the id block-{draft.id} is taken by another block", reason="BLOCK_ID_TAKEN")
    return [block_of_row(row) for row in rows]


async def attach_blocks(
    connection: Any,
    organization_id: UUID,
    agent_id: UUID,
    block_ids: Sequence[UUID],
    *,
    created_with_agent: bool,
) -> None:
    """Attaches blocks after those that are there, in this order; skips those that are. Raises as `attach`."""
    try:
        attached = await connection.fetch(_ATTACH, organization_id, agent_id, block_ids, created_with_agent)
    except asyncpg.UniqueViolationError:
        raise label_taken(
            f"agent agent-{agent_id} has another block with the same label as one of those to attach"
        ) from None
    except asyncpg.ForeignKeyViolationError:
        raise Aborted(
            "a block to attach was renamed or deleted in this very moment; try again",
            reason="BLOCK_VERSION_CONFLICT",
        ) from None
    if len(attached) < len(block_ids):
        missing = await connection.fetch(MISSING, organization_id, block_ids)
        if missing:
            raise no_such_block(missing[0]["id"])


def no_such_block(block_id: UUID) -> NotFound:
    """Returns the error for an unknown id."""
    return NotFound(f"Block block-{block_id} not found", reason="BLOCK_NOT_FOUND")
