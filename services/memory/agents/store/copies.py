"""Blocks that are made out of others, on Postgres."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import NotFound
from services.common.ids import uuid7
from services.memory.agent_tools.model import CallRecord
from services.memory.agent_tools.store import keep_record
from services.memory.agents.model import BlockEdit, RestoreRequest
from services.memory.blocks.model import Block, BlockDraft, Operation, Origin, Restoration
from services.memory.blocks.store.blocks import attach_blocks, create_blocks
from services.memory.blocks.store.commits import commit_block
from services.memory.blocks.store.rows import BLOCK_COLUMNS, block_of_row
from services.memory.core.editing.copies import copy_of
from services.memory.core.editing.patches import Plan
from services.memory.core.editing.undo import bring_back

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
# Kept from being erased meanwhile.
_FREE = f"""
SELECT {BLOCK_COLUMNS} FROM memory.blocks b
WHERE b.organization_id = $1 AND b.id = ANY($2)
    AND NOT EXISTS (
        SELECT FROM memory.agent_blocks k WHERE k.organization_id = $1 AND k.block_id = b.id)
FOR KEY SHARE OF b
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

# Locked in one order, so that restorations do not wait for one another in a ring.
_OWNED = f"""
SELECT {BLOCK_COLUMNS} FROM memory.blocks b
WHERE b.organization_id = $1 AND b.id = ANY($4) AND (
    EXISTS (
        SELECT FROM memory.agent_blocks k
        WHERE k.organization_id = $1 AND k.agent_id = $2 AND k.block_id = b.id)
    OR EXISTS (
        SELECT FROM memory.conversation_blocks c
        WHERE c.organization_id = $1 AND c.agent_id = $2 AND c.conversation_id = $3 AND c.block_id = b.id))
ORDER BY b.id FOR NO KEY UPDATE OF b
"""
_THEN = f"""
SELECT {BLOCK_COLUMNS}, wanted.version AS wanted, h.version AS found, h.label AS then_label, h.value AS then_value,
    h.char_limit AS then_limit, h.description AS then_description, h.metadata AS then_metadata
FROM unnest($2::uuid[], $3::bigint[]) AS wanted (id, version)
JOIN memory.blocks b ON b.organization_id = $1 AND b.id = wanted.id
LEFT JOIN memory.block_history h
    ON h.organization_id = $1 AND h.block_id = wanted.id AND h.version = wanted.version
ORDER BY b.id
"""
_DETACH = """
DELETE FROM memory.agent_blocks WHERE organization_id = $1 AND agent_id = $2 AND block_id = ANY($3)
"""
_SHARE = """
WITH shared AS (
    SELECT a.id
    FROM memory.agent_archives m
    JOIN memory.archives a ON a.organization_id = m.organization_id AND a.id = m.archive_id
    WHERE m.organization_id = $1 AND m.agent_id = $2
    FOR KEY SHARE OF a
), attached AS (
    INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id) SELECT $1, $3, id FROM shared
    ON CONFLICT (organization_id, agent_id, archive_id) DO NOTHING
), folder AS (
    INSERT INTO memory.agent_folders (organization_id, agent_id, folder_id, attached_at, most_open, view_chars)
    SELECT $1, $3, folder_id, now() + row_number() OVER (ORDER BY attached_at, folder_id) * interval '1 microsecond',
        most_open, view_chars
    FROM memory.agent_folders WHERE organization_id = $1 AND agent_id = $2
    ON CONFLICT DO NOTHING
), file AS (
    INSERT INTO memory.agent_files (
        organization_id, agent_id, file_id, is_open, first_line, last_line, char_limit, accessed_at)
    SELECT $1, $3, file_id, is_open, first_line, last_line, char_limit, accessed_at
    FROM memory.agent_files WHERE organization_id = $1 AND agent_id = $2
    ON CONFLICT DO NOTHING
)
SELECT id FROM shared ORDER BY id
"""
_EDITS = """
SELECT block_id, version, run_id, step_id FROM memory.block_history
WHERE organization_id = $1 AND run_id = ANY($2::uuid[])
ORDER BY block_id, version
"""
_OF_OTHERS = """
SELECT DISTINCT block_id FROM memory.agent_blocks
WHERE organization_id = $1 AND agent_id <> $2 AND block_id = ANY($3::uuid[])
"""


class PostgresCopies:
    """`CopyStore`."""

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
        versions: Mapping[UUID, int],
    ) -> list[Block]:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id, labels)
            own = (organization_id, agent_id, conversation_id)
            copies = await _copies(connection, own, labels)
            missing = [label for label in labels if label not in copies]
            if missing:
                rows = await connection.fetch(_SOURCES, organization_id, agent_id, missing, source_conversation_id)
                sources = [block_of_row(row) for row in rows]
                named = {block.id: versions[block.id] for block in sources if block.id in versions}
                then = await _then(connection, organization_id, named) if named else {}
                # A block that was renamed since stands under its label of today: that one was asked for.
                drafts = [replace(copy_of(then.get(one.id, one), uuid7()), label=one.label) for one in sources]
                await create_blocks(connection, organization_id, Origin(actor_id=user_id), drafts)
                await connection.execute(_OWN, *own, [draft.id for draft in drafts], [draft.label for draft in drafts])
                copies |= await _copies(connection, own, missing)
            for label in labels:
                if label not in copies:
                    raise NotFound(
                        f"Block with label {label!r} not found for agent agent-{agent_id}", reason="BLOCK_NOT_FOUND"
                    )
        return [copies[label] for label in labels]

    async def adopt(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID, block_ids: Sequence[UUID]
    ) -> list[Block]:
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(_FREE, organization_id, list(block_ids))
            blocks = {block.id: block for block in map(block_of_row, rows)}
            for block_id in block_ids:
                if block_id not in blocks:
                    raise NotFound(f"Block block-{block_id} not found", reason="BLOCK_NOT_FOUND")
            labels = [blocks[block_id].label for block_id in block_ids]
            own = (organization_id, agent_id, conversation_id)
            await connection.execute(_OWN, *own, block_ids, labels)
            copies = await _copies(connection, own, labels)
        return [copies[label] for label in dict.fromkeys(labels)]

    async def purge_conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            for statement in (_ERASE, _DISOWN):
                await connection.execute(statement, organization_id, agent_id, conversation_id)

    async def restore(self, request: RestoreRequest, arguments_hash: bytes) -> CallRecord:
        organization_id, origin = request.organization_id, request.origin
        async with self._pool.acquire() as connection, connection.transaction():
            owned = await connection.fetch(
                _OWNED, organization_id, request.agent_id, request.conversation_id, list(request.versions)
            )
            blocks = [block_of_row(row) for row in owned]
            versions = {block.id: request.versions[block.id] for block in blocks}
            then = await _then(connection, organization_id, versions)
            record = CallRecord(
                call_key=request.request_id,
                agent_id=request.agent_id,
                tool_name="restore_blocks",
                arguments_hash=arguments_hash,
                tool_return=json.dumps([str(one) for one in request.versions if one not in versions]),
                is_error=False,
                changed_block_ids=tuple(versions),
            )
            await keep_record(connection, organization_id, record)
            for block in blocks:
                after = bring_back(block, then[block.id].value, then[block.id].limit)
                if after.value != block.value:
                    restored = Restoration(version=versions[block.id])
                    await commit_block(connection, organization_id, after, Operation.RESTORE, origin, restored=restored)
        return record

    async def at_versions(self, organization_id: UUID, versions: Mapping[UUID, int]) -> dict[UUID, Block]:
        async with self._pool.acquire() as connection:
            return await _then(connection, organization_id, versions)

    async def create_and_attach(
        self,
        organization_id: UUID,
        agent_id: UUID,
        drafts: Sequence[BlockDraft],
        origin: Origin,
        record: CallRecord,
    ) -> None:
        new_ids = [draft.id for draft in drafts if draft.id is not None]
        async with self._pool.acquire() as connection, connection.transaction():
            await keep_record(connection, organization_id, record)
            await create_blocks(connection, organization_id, origin, drafts)
            await attach_blocks(connection, organization_id, agent_id, new_ids, created_with_agent=True)

    async def apply_plan(
        self, organization_id: UUID, agent_id: UUID, plan: Plan, origin: Origin, record: CallRecord
    ) -> None:
        new_ids = [draft.id for draft in plan.created if draft.id is not None]
        async with self._pool.acquire() as connection, connection.transaction():
            await keep_record(connection, organization_id, record)
            await connection.execute(_DETACH, organization_id, agent_id, plan.detached)
            for after in sorted(plan.edited.values(), key=lambda block: block.id):
                await commit_block(connection, organization_id, after, plan.operation, origin)
            await create_blocks(connection, organization_id, origin, plan.created)
            await attach_blocks(connection, organization_id, agent_id, new_ids, created_with_agent=False)

    async def share_archives(
        self, organization_id: UUID, source_agent_id: UUID, target_agent_id: UUID
    ) -> Sequence[UUID]:
        shared = await self._pool.fetch(_SHARE, organization_id, source_agent_id, target_agent_id)
        return [row["id"] for row in shared]

    async def edits(self, organization_id: UUID, run_ids: Sequence[UUID]) -> Sequence[BlockEdit]:
        return [BlockEdit(*row) for row in await self._pool.fetch(_EDITS, organization_id, run_ids)]

    async def shared_with_others(
        self, organization_id: UUID, agent_id: UUID, block_ids: Sequence[UUID]
    ) -> Sequence[UUID]:
        rows = await self._pool.fetch(_OF_OTHERS, organization_id, agent_id, block_ids)
        return [row["block_id"] for row in rows]


async def _then(connection: Any, organization_id: UUID, versions: Mapping[UUID, int]) -> dict[UUID, Block]:
    """See `CopyStore.at_versions`."""
    rows = await connection.fetch(_THEN, organization_id, list(versions), list(versions.values()))
    for row in rows:
        if row["found"] is None:
            raise NotFound(f"Block block-{row['id']} has no version {row['wanted']}", reason="BLOCK_VERSION_NOT_FOUND")
    return {
        row["id"]: replace(
            block_of_row(row),
            label=row["then_label"],
            value=row["then_value"],
            limit=row["then_limit"],
            description=row["then_description"],
            metadata=row["then_metadata"],
        )
        for row in rows
    }


async def _copies(connection: Any, own: tuple[UUID, UUID, UUID], labels: Sequence[str]) -> dict[str, Block]:
    """Returns a conversation's copies by label."""
    rows = await connection.fetch(_COPIES, *own, labels)
    return {row["label"]: block_of_row(row) for row in rows}
