"""New versions of blocks on Postgres, each with its row of history."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import AlreadyExists
from services.memory.agent_tools.model import ValueChange, ValueEdit
from services.memory.agent_tools.store import id_text
from services.memory.blocks.model import Block, Operation, Origin, Restoration
from services.memory.blocks.store.rows import BLOCK_COLUMNS, block_of_row
from services.memory.core.errors import VersionConflict

# Time goes on from version to version, whatever the clock of the server does: values are read as of a time.
_COMMIT = f"""
WITH edited AS (
    UPDATE memory.blocks SET
        label = $4, value = $5, char_limit = $6, description = $7, read_only = $8, hidden = $9,
        metadata = $10, tags = $11, project_id = $12, template_name = $13, is_template = $14,
        last_updated_by_id = $16, version = version + 1,
        updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond'),
        template_id = $21, base_template_id = $22, deployment_id = $23, entity_id = $24, preserve_on_migration = $25
    WHERE organization_id = $1 AND id = $2 AND version = $3
    RETURNING *
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at, restored_version, redo_version)
    SELECT organization_id, id, version, label, value, char_limit, description, metadata,
        $15, $16, $17, $18, $19, $20, updated_at, $26, $27
    FROM edited
)
SELECT {BLOCK_COLUMNS} FROM edited b
"""

# As many versions of each block as there are edits of it, a microsecond apart. What is not the value stays as it is.
# Blocks are locked in the order of their ids, so that nobody waits in a ring. All arrays come as texts, since about
# others a new connection first has to ask.
_COMMIT_VALUES = """
WITH wanted AS (
    SELECT * FROM unnest(
        $2::text[]::uuid[], $3::text[]::bigint[], $4::text[], $5::text[]::bigint[], $6::text[]::uuid[]
    ) AS wanted (id, version, value, edits, actor_id)
), locked AS (
    SELECT b.id FROM wanted JOIN memory.blocks b ON b.organization_id = $1 AND b.id = wanted.id
    WHERE b.version = wanted.version ORDER BY b.id FOR NO KEY UPDATE OF b
), edited AS (
    UPDATE memory.blocks b SET
        value = wanted.value, version = b.version + wanted.edits, last_updated_by_id = wanted.actor_id,
        updated_at = greatest(clock_timestamp(), b.updated_at + wanted.edits * interval '1 microsecond')
    FROM locked JOIN wanted ON wanted.id = locked.id
    WHERE b.organization_id = $1 AND b.id = locked.id AND b.version = wanted.version
    RETURNING b.id, b.version, b.label, b.char_limit, b.description, b.metadata, b.updated_at
), edit AS (
    SELECT edit.*, edited.label, edited.char_limit, edited.description, edited.metadata,
        edited.updated_at - (edited.version - edit.version) * interval '1 microsecond' AS made_at
    FROM edited JOIN unnest(
        $7::text[]::uuid[], $8::text[]::bigint[], $9::text[], $10::text[]::smallint[], $11::text[]::uuid[],
        $12::text[]::uuid[], $13::text[]::uuid[], $14::text[]::uuid[], $15::text[], $16::text[],
        $17::text[]::bytea[], $18::text[]
    ) AS edit (
        block_id, version, value, operation, actor_id, agent_id, run_id, step_id, call_key, tool_name,
        arguments_hash, tool_return) ON edit.block_id = edited.id
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at)
    SELECT $1, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, made_at
    FROM edit
), answered AS (
    INSERT INTO memory.applied_calls (
        organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error, changed_block_ids)
    SELECT $1, call_key, agent_id, tool_name, arguments_hash, tool_return, false, ARRAY[block_id] FROM edit
)
SELECT id, updated_at FROM edited
"""


async def commit_block(
    connection: Any,
    organization_id: UUID,
    after: Block,
    operation: Operation,
    origin: Origin,
    restored: Restoration | None = None,
) -> Block:
    """See `BlockStore.commit`; on a pool or within a transaction."""
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
            raise label_taken(f"an owner of this block has another block labelled {after.label!r}") from None
        raise VersionConflict(after.id) from None
    if row is None:
        raise VersionConflict(after.id)
    return block_of_row(row)


async def commit_values(
    connection: Any, organization_id: UUID, changes: Sequence[ValueChange]
) -> list[list[Block] | None]:
    """See `BlockStore.commit_values`; on a pool or within a transaction."""
    edits = [_edit_values(change.before, number, edit) for change in changes for number, edit in _numbered(change)]
    try:
        done = await connection.fetch(
            _COMMIT_VALUES,
            organization_id,
            *zip(*map(_change_values, changes), strict=True),
            *zip(*edits, strict=True),
        )
    except asyncpg.UniqueViolationError:  # of a call's key; whose it is, is found when each is looked up again
        return [None] * len(changes)
    times = {row["id"]: row["updated_at"] for row in done}
    return [_blocks(change, times[change.before.id]) if change.before.id in times else None for change in changes]


def _numbered(change: ValueChange) -> Iterable[tuple[int, ValueEdit]]:
    """The edits with their versions."""
    return enumerate(change.edits, start=change.before.version + 1)


def _change_values(change: ValueChange) -> tuple[str, ...]:
    """What the first arrays of _COMMIT_VALUES have of one block."""
    before, last = change.before, change.edits[-1]
    return str(before.id), str(before.version), last.value, str(len(change.edits)), str(last.origin.actor_id)


def _edit_values(before: Block, version: int, edit: ValueEdit) -> tuple[str | None, ...]:
    """What the other arrays have of one edit."""
    origin, record = edit.origin, edit.record
    return (
        str(before.id),
        str(version),
        edit.value,
        str(edit.operation.value),
        str(origin.actor_id),
        id_text(origin.agent_id),
        id_text(origin.run_id),
        id_text(origin.step_id),
        record.call_key,
        record.tool_name,
        rf"\x{record.arguments_hash.hex()}",
        record.tool_return,
    )


def _blocks(change: ValueChange, updated_at: datetime) -> list[Block]:
    """The block after each edit; `updated_at` is the time of the last."""
    newest = change.before.version + len(change.edits)
    return [
        replace(
            change.before,
            value=edit.value,
            version=version,
            last_updated_by_id=edit.origin.actor_id,
            updated_at=updated_at - timedelta(microseconds=newest - version),
        )
        for version, edit in _numbered(change)
    ]


def label_taken(message: str) -> AlreadyExists:
    """The error for two blocks of one label."""
    return AlreadyExists(message, reason="BLOCK_LABEL_TAKEN")
