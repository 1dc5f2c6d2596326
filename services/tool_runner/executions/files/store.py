"""Files given to calls, and made by them, on Postgres."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg

from services.common.core.paging import PageBy, PageOf, cut
from services.tool_runner.core.model import KeptFile, NewFile
from services.tool_runner.database import DatabasePool, Where
from services.tool_runner.executions import rows
from services.tool_runner.executions.model import FileFilter, file_place, token_of
from services.tool_runner.executions.rows import FILE_COLUMNS

_ADD = f"""
INSERT INTO tool_runner.files (organization_id, id, name, size, sha256, content, created_by_id)
VALUES ($1, $2, $3, length($4::bytea), encode(sha256($4::bytea), 'hex'), $4::bytea, $5)
RETURNING {FILE_COLUMNS}
"""
_FIND = f"SELECT {FILE_COLUMNS} FROM tool_runner.files WHERE organization_id = $1 AND id = ANY($2::uuid[])"
_CONTENTS = "SELECT id, content FROM tool_runner.files WHERE organization_id = $1 AND id = ANY($2::uuid[])"
_DELETE = "DELETE FROM tool_runner.files WHERE organization_id = $1 AND id = $2 RETURNING id"


class PostgresFiles:
    """`ports.FileStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def add(self, organization_id: UUID, file: NewFile) -> KeptFile:
        row = await self._pool.fetchrow(_ADD, organization_id, file.id, file.name, file.content, file.created_by_id)
        return rows.file(row)

    async def find(self, organization_id: UUID, ids: Sequence[UUID]) -> list[KeptFile]:
        return [rows.file(row) for row in await self._pool.fetch(_FIND, organization_id, ids)]

    async def contents(self, organization_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        return {row["id"]: row["content"] for row in await self._pool.fetch(_CONTENTS, organization_id, ids)}

    async def list(self, organization_id: UUID, filters: FileFilter) -> PageOf[KeptFile]:
        where = Where(organization_id)
        if filters.call_key is not None:
            where.add("call_key = {}", filters.call_key)
        if filters.agent_id is not None:
            where.add("agent_id = {}", filters.agent_id)
        if filters.token:
            where.before("created_at", "id", file_place(filters.token))
        scanned = await self._pool.fetch(
            f"SELECT {FILE_COLUMNS} FROM tool_runner.files WHERE {where.text()}"
            f" ORDER BY created_at DESC, id DESC LIMIT {filters.size + 1:d}",
            *where.parameters,
        )
        page = cut(scanned, PageBy(filters.size), lambda row: token_of(row["created_at"], row["id"].hex))
        return PageOf(tuple(map(rows.file, page.items)), page.next_token)

    async def delete(self, organization_id: UUID, file_id: UUID) -> bool:
        return await self._pool.fetchval(_DELETE, organization_id, file_id) is not None
