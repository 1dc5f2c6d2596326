"""An agent's memory as a whole, on Postgres."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.purge import purge_rows
from services.memory.agent_files.store.views import DIRECTORIES, directories_of
from services.memory.agents.model import AgentMemory
from services.memory.archives.model import Archive
from services.memory.archives.store import ARCHIVE_COLUMNS, archive_of_row, erase_archive
from services.memory.blocks.model import BlockDraft, Origin
from services.memory.blocks.store.blocks import attach_blocks, create_blocks
from services.memory.blocks.store.rows import BLOCK_COLUMNS, block_of_row
from services.memory.sql.rows import from_json

_ARCHIVES = """
FROM memory.agent_archives m
JOIN memory.archives a ON a.organization_id = m.organization_id AND a.id = m.archive_id
LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE m.organization_id = $1"""

# One row per block, or one row of nulls. What belongs to the archives is computed once and stands in every
# row; the tags are read by leaps over the index, one per tag, not one per passage.
_SHOWN = f"""
WITH RECURSIVE archive AS MATERIALIZED (
    SELECT {ARCHIVE_COLUMNS}, m.is_default, m.attached_at
    {_ARCHIVES} AND m.agent_id = $2
), tag (archive_id, tag, place) AS (
    SELECT id, (
        SELECT min(t.tag) FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = archive.id), 1
    FROM archive
    UNION ALL
    SELECT archive_id, (
        SELECT min(t.tag) FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = tag.archive_id AND t.tag > tag.tag), place + 1
    FROM tag WHERE tag IS NOT NULL AND place < 100
)
SELECT {BLOCK_COLUMNS}, i.block_id IS NOT NULL AS isolated,
    {{directories}} AS directories,
    (SELECT jsonb_agg(to_jsonb(archive) ORDER BY is_default DESC, attached_at, id) FROM archive) AS archives,
    ARRAY(SELECT DISTINCT tag FROM tag WHERE tag IS NOT NULL ORDER BY tag LIMIT 100) AS passage_tags
FROM (SELECT $1::uuid AS organization_id) o
LEFT JOIN memory.agent_blocks k ON k.organization_id = o.organization_id AND k.agent_id = $2
LEFT JOIN memory.conversation_blocks i
    ON i.organization_id = k.organization_id AND i.conversation_id = $3 AND i.label = k.label AND i.agent_id = $2
LEFT JOIN memory.blocks b ON b.organization_id = k.organization_id AND b.id = coalesce(i.block_id, k.block_id)
ORDER BY k.position, b.id
"""
# Only to begin the part about directories takes longer than most agents, who have none, shall wait.
_MEMORY = _SHOWN.format(
    directories="EXISTS (SELECT FROM memory.agent_folders WHERE organization_id = $1 AND agent_id = $2)"
)
# They are long, and stand in the first row alone.
_MEMORY_WITH_FILES = _SHOWN.format(
    directories=f"CASE WHEN row_number() OVER (ORDER BY k.position, b.id) = 1 THEN ({DIRECTORIES}) END"
)
_MOST_KNOWN = 10_000

_BLOCKS_OF_MANY = f"""
SELECT k.agent_id, {BLOCK_COLUMNS}
FROM memory.agent_blocks k
JOIN memory.blocks b ON b.organization_id = k.organization_id AND b.id = k.block_id
WHERE k.organization_id = $1 AND k.agent_id = ANY($2)
ORDER BY k.position, b.id
"""
_ARCHIVES_OF_MANY = f"""
SELECT m.agent_id, {ARCHIVE_COLUMNS}
{_ARCHIVES} AND m.agent_id = ANY($2)
ORDER BY m.is_default DESC, m.attached_at, a.id
"""

_ERASE_BLOCKS = """
DELETE FROM memory.blocks b USING memory.agent_blocks k
WHERE k.organization_id = $1 AND k.agent_id = $2 AND k.created_with_agent
    AND b.organization_id = k.organization_id AND b.id = k.block_id
    AND NOT EXISTS (
        SELECT FROM memory.agent_blocks other
        WHERE other.organization_id = $1 AND other.block_id = b.id AND other.agent_id <> $2)
"""
_OWN_ARCHIVES = """
SELECT m.archive_id FROM memory.agent_archives m
WHERE m.organization_id = $1 AND m.agent_id = $2 AND m.created_with_agent
    AND NOT EXISTS (
        SELECT FROM memory.agent_archives other
        WHERE other.organization_id = $1 AND other.archive_id = m.archive_id AND other.agent_id <> $2)
"""
# A copy that was attached to an agent by hand has an owner more, and stays.
_ERASE_COPIES = """
DELETE FROM memory.blocks b USING memory.conversation_blocks c
WHERE c.organization_id = $1 AND c.agent_id = $2
    AND b.organization_id = c.organization_id AND b.id = c.block_id
    AND NOT EXISTS (
        SELECT FROM memory.agent_blocks other
        WHERE other.organization_id = $1 AND other.block_id = b.id AND other.agent_id <> $2)
"""
_FORGET = (
    "DELETE FROM memory.agent_blocks WHERE organization_id = $1 AND agent_id = $2",
    "DELETE FROM memory.conversation_blocks WHERE organization_id = $1 AND agent_id = $2",
    "DELETE FROM memory.agent_archives WHERE organization_id = $1 AND agent_id = $2",
    "DELETE FROM memory.agent_files WHERE organization_id = $1 AND agent_id = $2",
    "DELETE FROM memory.agent_folders WHERE organization_id = $1 AND agent_id = $2",
    "DELETE FROM memory.applied_calls WHERE organization_id = $1 AND agent_id = $2",
)


class PostgresAgents:
    """`AgentStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        # Agents that had folders when they were looked at last; it decides what to ask first, and nothing else.
        self._with_files: set[tuple[UUID | None, ...]] = set()

    async def memory(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None = None) -> AgentMemory:
        rows, directories = await self._read(organization_id, agent_id, conversation_id)
        archives = [_archive_of_json(value) for value in rows[0]["archives"] or ()]
        return AgentMemory(
            agent_id=agent_id,
            blocks=tuple(block_of_row(row) for row in rows if row["id"] is not None),
            archives=tuple(archives),
            passage_count=sum(archive.passage_count for archive in archives),
            passage_tags=tuple(rows[0]["passage_tags"]),
            isolated_block_ids=tuple(row["id"] for row in rows if row["isolated"]),
            directories=directories_of(directories),
        )

    async def _read(self, *parameters: UUID | None) -> tuple[Sequence[asyncpg.Record], Sequence[Any]]:
        """Returns rows, and the value of DIRECTORIES."""
        key = parameters[:2]
        if key not in self._with_files:
            rows = await self._pool.fetch(_MEMORY, *parameters)
            if not rows[0]["directories"]:
                return rows, ()
            if len(self._with_files) >= _MOST_KNOWN:
                self._with_files.clear()
            self._with_files.add(key)
        rows = await self._pool.fetch(_MEMORY_WITH_FILES, *parameters)
        if rows[0]["directories"] is None:
            self._with_files.discard(key)
        return rows, rows[0]["directories"] or ()

    async def memories(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> list[AgentMemory]:
        blocks, archives = defaultdict(list), defaultdict(list)
        async with self._pool.acquire() as connection:
            for row in await connection.fetch(_BLOCKS_OF_MANY, organization_id, agent_ids):
                blocks[row["agent_id"]].append(block_of_row(row))
            for row in await connection.fetch(_ARCHIVES_OF_MANY, organization_id, agent_ids):
                archives[row["agent_id"]].append(archive_of_row(row))
        return [
            AgentMemory(agent_id=agent_id, blocks=tuple(blocks[agent_id]), archives=tuple(archives[agent_id]))
            for agent_id in agent_ids
        ]

    async def create(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        drafts: Sequence[BlockDraft],
        block_ids: Sequence[UUID],
    ) -> None:
        new_ids = [draft.id for draft in drafts if draft.id is not None]
        async with self._pool.acquire() as connection, connection.transaction():
            if block_ids:
                await attach_blocks(connection, organization_id, agent_id, block_ids, created_with_agent=False)
            if new_ids:
                await create_blocks(connection, organization_id, Origin(actor_id=user_id), drafts)
                await attach_blocks(connection, organization_id, agent_id, new_ids, created_with_agent=True)

    async def purge(self, organization_id: UUID, agent_id: UUID, *, erase_blocks: bool) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            for row in await connection.fetch(_OWN_ARCHIVES, organization_id, agent_id):
                await erase_archive(connection, organization_id, row["archive_id"])
            for statement in (*((_ERASE_BLOCKS,) if erase_blocks else ()), _ERASE_COPIES, *_FORGET):
                await connection.execute(statement, organization_id, agent_id)

    async def purge_organization(self, organization_id: UUID) -> bool:
        return await purge_rows(self._pool, "memory", organization_id)


def _archive_of_json(value: dict[str, Any]) -> Archive:
    """Returns an archive from the JSON of a row: ids and times are texts there."""
    ids, times = ("id", "created_by_id", "last_updated_by_id"), ("created_at", "updated_at")
    return archive_of_row(from_json(value, ids=ids, times=times))
