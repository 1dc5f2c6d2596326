"""The catalogue on Postgres, with prepared statements."""

import json
from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.tool_runner.core.model import Tool
from services.tool_runner.database import DatabasePool
from services.tool_runner.errors import name_taken, no_such_tool
from services.tool_runner.tools import rows
from services.tool_runner.tools.rows import CHANGING, TOOL_COLUMNS

_NAMES = ", ".join(CHANGING)
_GET = f"SELECT {TOOL_COLUMNS} FROM tool_runner.tools WHERE organization_id = $1 AND id = $2"
_BY_NAME = f"SELECT {TOOL_COLUMNS} FROM tool_runner.tools WHERE organization_id = $1 AND name = $2"
_BATCH = f"""
SELECT {TOOL_COLUMNS} FROM tool_runner.tools
WHERE organization_id = $1 AND (id = ANY($2::uuid[]) OR name = ANY($3::text[]))
"""

_INSERT = f"""
INSERT INTO tool_runner.tools (organization_id, created_by_id, last_updated_by_id, id, {_NAMES})
VALUES ($1, $2, $2, $3, {", ".join(f"${n}" for n in range(4, 4 + len(CHANGING)))})
ON CONFLICT DO NOTHING
RETURNING {TOOL_COLUMNS}
"""

_UPDATE = f"""
UPDATE tool_runner.tools
SET ({_NAMES}) = ROW({", ".join(f"${n}" for n in range(5, 5 + len(CHANGING)))}),
    last_updated_by_id = $2, updated_at = now(), version = version + 1
WHERE organization_id = $1 AND id = $3 AND version = $4
RETURNING {TOOL_COLUMNS}
"""

# What a release changed in a built-in tool changes here; nothing is written where nothing did. A tenant's own tool
# that has the name of a built-in one keeps it, and so it does what it set on a built-in one.
_ENSURE = """
INSERT INTO tool_runner.tools (
    organization_id, created_by_id, last_updated_by_id, id, name, description, tool_type, source_type, source_code,
    json_schema, tags, return_char_limit, enable_parallel_execution)
SELECT $1, $2, $2, d.id, d.name, d.description, d.tool_type, d.source_type, '', d.json_schema, d.tags,
    d.return_char_limit, d.enable_parallel_execution
FROM jsonb_to_recordset($3) AS d (
    id uuid, name text, description text, tool_type text, source_type text, json_schema text, tags text[],
    return_char_limit integer, enable_parallel_execution boolean)
WHERE NOT EXISTS (
    SELECT FROM tool_runner.tools t WHERE t.organization_id = $1 AND t.name = d.name AND t.id <> d.id)
ON CONFLICT (organization_id, id) DO UPDATE SET
    name = excluded.name, description = excluded.description, tool_type = excluded.tool_type,
    json_schema = excluded.json_schema, enable_parallel_execution = excluded.enable_parallel_execution,
    updated_at = now(), version = tools.version + 1
WHERE tools.tool_type LIKE 'letta\\_%'
    AND (tools.json_schema, tools.tool_type, tools.enable_parallel_execution)
    IS DISTINCT FROM (excluded.json_schema, excluded.tool_type, excluded.enable_parallel_execution)
"""

# With its environment variables.
_DELETE = """
WITH variables AS (
    DELETE FROM tool_runner.variables WHERE organization_id = $1 AND scope = 'tool' AND owner_id = $2)
DELETE FROM tool_runner.tools WHERE organization_id = $1 AND id = $2 RETURNING id
"""


class PostgresTools:
    """`ports.ToolStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def find(self, organization_id: UUID, tool_id: UUID) -> Tool | None:
        row = await self._pool.fetchrow(_GET, organization_id, tool_id)
        return rows.tool(row) if row else None

    async def find_by_name(self, organization_id: UUID, name: str) -> Tool | None:
        row = await self._pool.fetchrow(_BY_NAME, organization_id, name)
        return rows.tool(row) if row else None

    async def batch(self, organization_id: UUID, ids: Sequence[UUID], names: Sequence[str]) -> list[Tool]:
        records = await self._pool.fetch(_BATCH, organization_id, ids, names)
        return [rows.tool(row) for row in records]

    async def insert(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool:
        row = await self._pool.fetchrow(_INSERT, organization_id, user_id, tool.id, *_values(tool))
        if row is None:
            if present := await self.find(organization_id, tool.id):
                return present
            raise name_taken(tool.name)
        return rows.tool(row)

    async def update(self, organization_id: UUID, user_id: UUID, tool: Tool) -> Tool | None:
        try:
            row = await self._pool.fetchrow(_UPDATE, organization_id, user_id, tool.id, tool.version, *_values(tool))
        except asyncpg.UniqueViolationError:
            raise name_taken(tool.name) from None
        return rows.tool(row) if row else None

    async def ensure(self, organization_id: UUID, user_id: UUID, tools: Sequence[Tool]) -> None:
        names = ("name", "description", "tool_type", "source_type", "json_schema", "tags")
        flags = ("return_char_limit", "enable_parallel_execution")
        described = [{"id": str(tool.id)} | {name: getattr(tool, name) for name in (*names, *flags)} for tool in tools]
        await self._pool.execute(_ENSURE, organization_id, user_id, json.loads(json.dumps(described)))

    async def delete(self, organization_id: UUID, tool_id: UUID) -> None:
        if await self._pool.fetchval(_DELETE, organization_id, tool_id) is None:
            raise no_such_tool(tool_id)


def _values(tool: Tool) -> list[object]:
    return [getattr(tool, name) for name in CHANGING]
