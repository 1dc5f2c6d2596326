"""Blocks, history and attachments on Postgres: the turn path, with prepared statements."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import Aborted, AlreadyExists, NotFound
from services.memory.adapters import rows
from services.memory.adapters.rows import BLOCK_COLUMNS
from services.memory.model import Block, BlockDraft, CallRecord, Operation, Origin, Restored, ValueEdit
from services.memory.ports import BlockById, BlockByLabel, BlockKey, VersionConflict

_BY_ID = f"SELECT {BLOCK_COLUMNS} FROM memory.blocks b WHERE b.organization_id = $1 AND b.id = $2"
_BY_LABEL = f"""
SELECT {BLOCK_COLUMNS}
FROM memory.agent_blocks a
JOIN memory.blocks b ON b.organization_id = a.organization_id AND b.id = a.block_id
WHERE a.organization_id = $1 AND a.agent_id = $2 AND a.label = $3
"""

_CREATE = f"""
WITH made AS (
    INSERT INTO memory.blocks (
        organization_id, id, label, value, char_limit, description, read_only, hidden, metadata, tags,
        project_id, template_name, is_template, created_by_id, last_updated_by_id, template_id, base_template_id,
        deployment_id, entity_id, preserve_on_migration)
    SELECT $1, d.id, d.label, d.value, d.limit, d.description, d.read_only, d.hidden, d.metadata, d.tags,
        d.project_id, d.template_name, d.is_template, $2, $2, d.template_id, d.base_template_id,
        d.deployment_id, d.entity_id, d.preserve_on_migration
    FROM jsonb_to_recordset($3) AS d (
        id uuid, label text, value text, "limit" bigint, description text, read_only boolean, hidden boolean,
        metadata jsonb, tags text[], project_id text, template_name text, is_template boolean,
        template_id text, base_template_id text, deployment_id text, entity_id text, preserve_on_migration boolean)
    ON CONFLICT (organization_id, id) DO NOTHING
    RETURNING *
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key)
    SELECT organization_id, id, version, label, value, char_limit, description, metadata,
        {Operation.CREATE:d}, $2, $4, $5, $6, $7
    FROM made
)
SELECT {BLOCK_COLUMNS} FROM made b
"""

# The first version says what a block was created as, whatever became of it.
_FIRST = """
SELECT label, value, char_limit, description, metadata FROM memory.block_history
WHERE organization_id = $1 AND block_id = $2 AND version = 1
"""

# Time goes on from version to version, whatever the clock of the server does: values are read as of a time.
_COMMIT = f"""
WITH edited AS (
    UPDATE memory.blocks SET
        label = $4, value = $5, char_limit = $6, description = $7, read_only = $8, hidden = $9,
        metadata = $10, tags = $11, project_id = $12, template_name = $13, is_template = $14,
        last_updated_by_id = $16, version = version + 1,
        updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond'),
        template_id = $26, base_template_id = $27, deployment_id = $28, entity_id = $29, preserve_on_migration = $30
    WHERE organization_id = $1 AND id = $2 AND version = $3
    RETURNING *
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at, restored_version, redo_version)
    SELECT organization_id, id, version, label, value, char_limit, description, metadata,
        $15, $16, $17, $18, $19, $20, updated_at, $31, $32
    FROM edited
), answered AS (
    INSERT INTO memory.applied_calls (
        organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error,
        changed_block_ids)
    SELECT organization_id, $21, $17, $22, $23, $24, $25, ARRAY[id] FROM edited WHERE $21::text IS NOT NULL
)
SELECT {BLOCK_COLUMNS} FROM edited b
"""

# As many versions as there are edits, a microsecond apart. What is not the value stays as it is.
_COMMIT_VALUES = """
WITH edited AS (
    UPDATE memory.blocks SET
        value = $4, version = version + $5::int, last_updated_by_id = $6,
        updated_at = greatest(clock_timestamp(), updated_at + $5::int * interval '1 microsecond')
    WHERE organization_id = $1 AND id = $2 AND version = $3
    RETURNING label, char_limit, description, metadata, updated_at
), edit AS (
    SELECT edit.*, edited.*, edited.updated_at - ($5::int - place) * interval '1 microsecond' AS made_at
    FROM edited, unnest(
        $7::text[], $8::smallint[], $9::uuid[], $10::uuid[], $11::uuid[], $12::uuid[],
        $13::text[], $14::text[], $15::bytea[], $16::text[]
    ) WITH ORDINALITY AS edit (
        value, operation, actor_id, agent_id, run_id, step_id, call_key, tool_name, arguments_hash, tool_return, place)
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at)
    SELECT $1, $2, $3 + place, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, made_at
    FROM edit
), answered AS (
    INSERT INTO memory.applied_calls (
        organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error, changed_block_ids)
    SELECT $1, call_key, agent_id, tool_name, arguments_hash, tool_return, false, ARRAY[$2::uuid] FROM edit
)
SELECT updated_at FROM edited
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
_MISSING = """
SELECT wanted.id FROM unnest($2::uuid[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM memory.blocks b WHERE b.organization_id = $1 AND b.id = wanted.id)
"""


class PostgresBlocks:
    """`ports.BlockStore`."""

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
        return rows.block(row)

    async def create(self, organization_id: UUID, user_id: UUID, draft: BlockDraft) -> Block:
        async with self._pool.acquire() as connection:
            made = await create_blocks(connection, organization_id, Origin(actor_id=user_id), [draft])
        assert draft.id is not None
        return made[0] if made else await self.get(organization_id, BlockById(draft.id))

    async def commit(
        self,
        organization_id: UUID,
        after: Block,
        operation: Operation,
        origin: Origin,
        record: CallRecord | None = None,
        restored: Restored | None = None,
    ) -> Block:
        return await commit_block(self._pool, organization_id, after, operation, origin, record, restored)

    async def commit_values(self, organization_id: UUID, before: Block, edits: Sequence[ValueEdit]) -> list[Block]:
        last = edits[-1]
        try:
            updated_at: datetime | None = await self._pool.fetchval(
                _COMMIT_VALUES,
                organization_id,
                before.id,
                before.version,
                last.value,
                len(edits),
                last.origin.actor_id,
                *zip(*map(_edit_values, edits), strict=True),
            )
        except asyncpg.UniqueViolationError:  # of a call's key
            raise VersionConflict(before.id) from None
        if updated_at is None:
            raise VersionConflict(before.id)
        return [
            replace(
                before,
                value=edit.value,
                version=before.version + place,
                last_updated_by_id=edit.origin.actor_id,
                updated_at=updated_at - timedelta(microseconds=len(edits) - place),
            )
            for place, edit in enumerate(edits, start=1)
        ]

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
        found = await self._pool.fetch(
            "SELECT agent_id FROM memory.agent_blocks WHERE organization_id = $1 AND block_id = $2"
            " ORDER BY attached_at, agent_id",
            organization_id,
            block_id,
        )
        return [row["agent_id"] for row in found]


def _edit_values(edit: ValueEdit) -> tuple[object, ...]:
    """What the arrays of _COMMIT_VALUES have of one edit."""
    origin, record = edit.origin, edit.record
    return (
        edit.value,
        edit.operation,
        origin.actor_id,
        origin.agent_id,
        origin.run_id,
        origin.step_id,
        record.call_key,
        record.tool_name,
        record.arguments_hash,
        record.tool_return,
    )


async def commit_block(
    connection: Any,
    organization_id: UUID,
    after: Block,
    operation: Operation,
    origin: Origin,
    record: CallRecord | None = None,
    restored: Restored | None = None,
) -> Block:
    """See `BlockStore.commit`; on a pool or within a transaction."""
    answer: tuple[object, ...] = (None,) * 5
    if record is not None:
        answer = (record.call_key, record.tool_name, record.arguments_hash, record.tool_return, record.is_error)
    try:
        row = await connection.fetchrow(
            _COMMIT,
            organization_id,
            after.id,
            after.version,
            after.label,
            after.value,
            after.limit,
            after.description,
            after.read_only,
            after.hidden,
            after.metadata,
            after.tags,
            after.project_id,
            after.template_name,
            after.is_template,
            operation,
            origin.actor_id,
            origin.agent_id,
            origin.run_id,
            origin.step_id,
            origin.call_key,
            *answer,
            after.template_id,
            after.base_template_id,
            after.deployment_id,
            after.entity_id,
            after.preserve_on_migration,
            None if restored is None else restored.version,
            None if restored is None else restored.redo_version,
        )
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name in ("agent_blocks_label_key", "conversation_blocks_pkey"):
            raise _label_taken(f"an owner of this block has another block labelled {after.label!r}") from None
        raise VersionConflict(after.id) from None
    if row is None:
        raise VersionConflict(after.id)
    return rows.block(row)


async def create_blocks(
    connection: Any, organization_id: UUID, origin: Origin, drafts: Sequence[BlockDraft]
) -> list[Block]:
    """Creates blocks with their first version; leaves out those created before with the same content.

    Raises AlreadyExists (BLOCK_ID_TAKEN) for another content.
    """
    made = await connection.fetch(
        _CREATE,
        organization_id,
        origin.actor_id,
        [asdict(draft) for draft in drafts],
        origin.agent_id,
        origin.run_id,
        origin.step_id,
        origin.call_key,
    )
    created = {row["id"] for row in made}
    for draft in drafts:
        if draft.id not in created:
            first = await connection.fetchrow(_FIRST, organization_id, draft.id)
            same = (draft.label, draft.value, draft.limit, draft.description, draft.metadata)
            if first is None or tuple(first) != same:
                raise AlreadyExists(f"the id block-{draft.id} is taken by another block", reason="BLOCK_ID_TAKEN")
    return [rows.block(row) for row in made]


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
        done = await connection.fetch(_ATTACH, organization_id, agent_id, block_ids, created_with_agent)
    except asyncpg.UniqueViolationError:
        raise _label_taken(
            f"agent agent-{agent_id} has another block with the same label as one of those to attach"
        ) from None
    except asyncpg.ForeignKeyViolationError:
        raise Aborted(
            "a block to attach was renamed or deleted in this very moment; try again",
            reason="BLOCK_VERSION_CONFLICT",
        ) from None
    if len(done) < len(block_ids):
        missing = await connection.fetch(_MISSING, organization_id, block_ids)
        if missing:
            raise no_such_block(missing[0]["id"])


def no_such_block(block_id: UUID) -> NotFound:
    """The error for an unknown id."""
    return NotFound(f"Block block-{block_id} not found", reason="BLOCK_NOT_FOUND")


def _label_taken(message: str) -> AlreadyExists:
    return AlreadyExists(message, reason="BLOCK_LABEL_TAKEN")
