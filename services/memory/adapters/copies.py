"""Blocks that are made out of others, on Postgres."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import NotFound
from services.common.ids import uuid7
from services.memory.adapters import rows
from services.memory.adapters.blocks import create_blocks
from services.memory.adapters.rows import BLOCK_COLUMNS
from services.memory.copies import copy_of
from services.memory.model import Block

# Locked, so that of two who isolate the same label at once the second finds the copy of the first.
_LOCK = """
SELECT label FROM memory.agent_blocks
WHERE organization_id = $1 AND agent_id = $2 AND label = ANY($3)
ORDER BY label FOR NO KEY UPDATE
"""
_SOURCES = f"""
SELECT {BLOCK_COLUMNS}
FROM memory.agent_blocks k
LEFT JOIN memory.conversation_blocks s
    ON s.organization_id = k.organization_id AND s.conversation_id = $4 AND s.label = k.label AND s.agent_id = $2
JOIN memory.blocks b ON b.organization_id = k.organization_id AND b.id = coalesce(s.block_id, k.block_id)
WHERE k.organization_id = $1 AND k.agent_id = $2 AND k.label = ANY($3)
"""
_OWN = """
INSERT INTO memory.conversation_blocks (organization_id, conversation_id, label, block_id, agent_id)
SELECT $1, $3, made.label, made.id, $2 FROM unnest($4::uuid[], $5::text[]) AS made (id, label)
ON CONFLICT (organization_id, conversation_id, label) DO NOTHING
"""
_COPIES = f"""
SELECT {BLOCK_COLUMNS}
FROM memory.conversation_blocks c
JOIN memory.blocks b ON b.organization_id = c.organization_id AND b.id = c.block_id
WHERE c.organization_id = $1 AND c.agent_id = $2 AND c.conversation_id = $3 AND c.label = ANY($4)
"""
# A copy that was attached to an agent by hand has an owner more, and stays.
_ERASE = """
DELETE FROM memory.blocks b USING memory.conversation_blocks c
WHERE c.organization_id = $1 AND c.agent_id = $2 AND c.conversation_id = $3
    AND b.organization_id = c.organization_id AND b.id = c.block_id
    AND NOT EXISTS (
        SELECT FROM memory.agent_blocks other WHERE other.organization_id = $1 AND other.block_id = b.id)
"""
_DISOWN = """
DELETE FROM memory.conversation_blocks WHERE organization_id = $1 AND agent_id = $2 AND conversation_id = $3
"""


class PostgresCopies:
    """`ports_copies.CopyStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def isolate(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        labels: Sequence[str],
        source_conversation_id: UUID | None,
    ) -> list[Block]:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id, labels)
            own = (organization_id, agent_id, conversation_id)
            copies = await _copies(connection, own, labels)
            missing = [label for label in labels if label not in copies]
            if missing:
                found = await connection.fetch(_SOURCES, organization_id, agent_id, missing, source_conversation_id)
                drafts = [copy_of(rows.block(row), uuid7()) for row in found]
                await create_blocks(connection, organization_id, user_id, drafts)
                await connection.execute(_OWN, *own, [draft.id for draft in drafts], [draft.label for draft in drafts])
                copies |= await _copies(connection, own, missing)
            for label in labels:
                if label not in copies:
                    raise NotFound(
                        f"Block with label {label!r} not found for agent agent-{agent_id}", reason="BLOCK_NOT_FOUND"
                    )
        return [copies[label] for label in labels]

    async def purge_conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            for statement in (_ERASE, _DISOWN):
                await connection.execute(statement, organization_id, agent_id, conversation_id)


async def _copies(connection: Any, own: tuple[UUID, UUID, UUID], labels: Sequence[str]) -> dict[str, Block]:
    """A conversation's copies by label."""
    found = await connection.fetch(_COPIES, *own, labels)
    return {row["label"]: rows.block(row) for row in found}
