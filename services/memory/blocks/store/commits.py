"""New versions of blocks on Postgres, each with its row of history."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.records import columns
from services.common.core.statements import Statement
from services.common.errors import AlreadyExists
from services.memory.agent_tools.fences import FENCED
from services.memory.agent_tools.model import ValueChange, ValueEdit
from services.memory.agent_tools.store import id_text
from services.memory.blocks.model import Block, Operation, Origin, Restoration
from services.memory.blocks.store.rows import BLOCK_COLUMNS, SETTINGS, block_of_row
from services.memory.blocks.tables import blocks
from services.memory.core.errors import VersionConflict
from services.memory.sql.statements import arrays

# Time goes on from version to version, whatever the clock of the server does: values are read as of a time.
_COMMIT = Statement(f"""
WITH edited AS (
    UPDATE memory.blocks SET
        {", ".join(f"{blocks.c[name].name} = :{name}" for name in SETTINGS)},
        last_updated_by_id = :actor_id, version = version + 1,
        updated_at = greatest(clock_timestamp(), updated_at + interval '1 microsecond')
    WHERE organization_id = :organization_id AND id = :block_id AND version = :version
    RETURNING *
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at, restored_version, redo_version)
    SELECT organization_id, id, version, label, value, char_limit, description, metadata, :operation,
        :actor_id, :agent_id, :run_id, :step_id, :call_key, updated_at, :restored_version, :redo_version
    FROM edited
)
SELECT {BLOCK_COLUMNS} FROM edited b
""")

# As many versions of each block as there are edits of it, a microsecond apart. What is not the value stays as it is.
# Blocks are locked in the order of their ids, so that nobody waits in a ring. One with an edit of a former owner of a
# run stays as it is: its edits are looked up again, each for itself. All arrays come as texts, since about others a new
# connection first has to ask.
_COMMIT_VALUES = Statement(f"""
WITH wanted AS (
    SELECT * FROM unnest(
        :block_ids::text[]::uuid[], :versions::text[]::bigint[], :values::text[], :edit_counts::text[]::bigint[],
        :last_actor_ids::text[]::uuid[]
    ) AS wanted (id, version, value, edits, actor_id)
), locked AS (
    SELECT b.id FROM wanted JOIN memory.blocks b ON b.organization_id = :organization_id AND b.id = wanted.id
    WHERE b.version = wanted.version AND b.id NOT IN (
        SELECT owner.block_id FROM unnest(
            :edit_block_ids::text[]::uuid[], :owner_run_ids::text[]::uuid[], :owner_fences::text[]::bigint[]
        ) AS owner (block_id, run_id, fence)
        WHERE {FENCED.format(":organization_id", "owner.run_id", "owner.fence")})
    ORDER BY b.id FOR NO KEY UPDATE OF b
), edited AS (
    UPDATE memory.blocks b SET
        value = wanted.value, version = b.version + wanted.edits, last_updated_by_id = wanted.actor_id,
        updated_at = greatest(clock_timestamp(), b.updated_at + wanted.edits * interval '1 microsecond')
    FROM locked JOIN wanted ON wanted.id = locked.id
    WHERE b.organization_id = :organization_id AND b.id = locked.id AND b.version = wanted.version
    RETURNING b.id, b.version, b.label, b.char_limit, b.description, b.metadata, b.updated_at
), edit AS (
    SELECT edit.*, edited.label, edited.char_limit, edited.description, edited.metadata,
        edited.updated_at - (edited.version - edit.version) * interval '1 microsecond' AS made_at
    FROM edited JOIN unnest(
        :edit_block_ids::text[]::uuid[], :edit_versions::text[]::bigint[], :edit_values::text[],
        :operations::text[]::smallint[], :actor_ids::text[]::uuid[], :agent_ids::text[]::uuid[],
        :run_ids::text[]::uuid[], :step_ids::text[]::uuid[], :call_keys::text[], :tool_names::text[],
        :argument_hashes::text[]::bytea[], :tool_returns::text[]
    ) AS edit (
        block_id, version, value, operation, actor_id, agent_id, run_id, step_id, call_key, tool_name,
        arguments_hash, tool_return) ON edit.block_id = edited.id
), recorded AS (
    INSERT INTO memory.block_history (
        organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, created_at)
    SELECT :organization_id, block_id, version, label, value, char_limit, description, metadata, operation,
        actor_id, agent_id, run_id, step_id, call_key, made_at
    FROM edit
), answered AS (
    INSERT INTO memory.applied_calls (
        organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error, changed_block_ids)
    SELECT :organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, false, ARRAY[block_id]
    FROM edit
)
SELECT id, updated_at FROM edited
""")


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
            *_COMMIT.bind(
                organization_id=organization_id,
                block_id=after.id,
                version=after.version,
                operation=operation,
                restored_version=None if restored is None else restored.version,
                redo_version=None if restored is None else restored.redo_version,
                **columns(after, SETTINGS),
                **asdict(origin),
            )
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
    edits = [_edit_values(change.before, number, edit) for change in changes for number, edit in _with_versions(change)]
    try:
        values = arrays(map(_change_values, changes)) | arrays(edits)
        done = await connection.fetch(*_COMMIT_VALUES.bind(organization_id=organization_id, **values))
    except asyncpg.UniqueViolationError:  # of a call's key; whose it is, is found when each is looked up again
        return [None] * len(changes)
    times = {row["id"]: row["updated_at"] for row in done}
    return [_blocks(change, times[change.before.id]) if change.before.id in times else None for change in changes]


def _with_versions(change: ValueChange) -> Iterable[tuple[int, ValueEdit]]:
    """Returns the edits with their versions."""
    return enumerate(change.edits, start=change.before.version + 1)


def _change_values(change: ValueChange) -> dict[str, str]:
    """Returns one block's values in the arrays of _COMMIT_VALUES."""
    before, last = change.before, change.edits[-1]
    return {
        "block_ids": str(before.id),
        "versions": str(before.version),
        "values": last.value,
        "edit_counts": str(len(change.edits)),
        "last_actor_ids": str(last.origin.actor_id),
    }


def _edit_values(before: Block, version: int, edit: ValueEdit) -> dict[str, str | None]:
    """Returns one edit's values in the arrays of _COMMIT_VALUES."""
    origin, record = edit.origin, edit.record
    return {
        "edit_block_ids": str(before.id),
        "edit_versions": str(version),
        "edit_values": edit.value,
        "operations": str(edit.operation.value),
        "actor_ids": str(origin.actor_id),
        "agent_ids": id_text(origin.agent_id),
        "run_ids": id_text(origin.run_id),
        "owner_run_ids": id_text(edit.owner[0]),
        "owner_fences": str(edit.owner[1]),
        "step_ids": id_text(origin.step_id),
        "call_keys": record.call_key,
        "tool_names": record.tool_name,
        "argument_hashes": rf"\x{record.arguments_hash.hex()}",
        "tool_returns": record.tool_return,
    }


def _blocks(change: ValueChange, updated_at: datetime) -> list[Block]:
    """Returns the block after each edit; `updated_at` is the time of the last."""
    newest = change.before.version + len(change.edits)
    return [
        replace(
            change.before,
            value=edit.value,
            version=version,
            last_updated_by_id=edit.origin.actor_id,
            updated_at=updated_at - timedelta(microseconds=newest - version),
        )
        for version, edit in _with_versions(change)
    ]


def label_taken(message: str) -> AlreadyExists:
    """Returns the error for two blocks of one label."""
    return AlreadyExists(message, reason="BLOCK_LABEL_TAKEN")
