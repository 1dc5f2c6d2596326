"""Versions of one block on Postgres."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.records import record
from services.common.errors import NotFound
from services.memory.blocks.model import BlockVersion, Operation
from services.memory.sql.rows import whole

_OF_BLOCK = (
    'SELECT h.*, h.char_limit AS "limit" FROM memory.block_history h WHERE h.organization_id = $1 AND h.block_id = $2'
)
_VERSION = f"{_OF_BLOCK} AND h.version = $3"
_AS_OF = f"{_OF_BLOCK} AND h.created_at <= $3 ORDER BY h.created_at DESC, h.version DESC LIMIT 1"
# Down the primary key, a version and the one before it at a time, until two values differ.
_CHANGED = f"""
{_OF_BLOCK} AND h.version <= $3 AND h.value IS DISTINCT FROM (
    SELECT before.value FROM memory.block_history before
    WHERE before.organization_id = $1 AND before.block_id = $2 AND before.version = h.version - 1)
ORDER BY h.version DESC LIMIT 1
"""


class PostgresHistory:
    """`HistoryStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def version(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        missing = f"Block block-{block_id} has no version {version}"
        return await self._found(missing, _VERSION, organization_id, block_id, version)

    async def as_of(self, organization_id: UUID, block_id: UUID, time: datetime) -> BlockVersion:
        missing = f"Block block-{block_id} did not exist at {time.isoformat()}"
        return await self._found(missing, _AS_OF, organization_id, block_id, time)

    async def changed(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        missing = f"Block block-{block_id} has no version {version}"
        return await self._found(missing, _CHANGED, organization_id, block_id, version)

    async def _found(self, missing: str, statement: str, *values: object) -> BlockVersion:
        row = await self._pool.fetchrow(statement, *values)
        if row is None:
            raise NotFound(missing, reason="BLOCK_VERSION_NOT_FOUND")
        return version_of_row(row)


def version_of_row(row: Mapping[str, Any]) -> BlockVersion:
    """Returns the version in a row with the columns of `block_history`, by the names of the fields."""
    whole(row["value"])
    return record(BlockVersion, {**row, "operation": Operation(row["operation"])})
