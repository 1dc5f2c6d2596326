"""MCP servers and their tools on Postgres. What is secret is sealed here, bound to its row and column."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.refusals import Refused
from services.common.core.statements import Statement
from services.common.encryption import Sealer, UnreadableSecret
from services.common.errors import AlreadyExists
from services.tool_runner.core.model import Tool
from services.tool_runner.mcp_servers import model
from services.tool_runner.mcp_servers.model import INVALID, Server, Status
from services.tool_runner.mcp_servers.ports import SyncOutcome
from services.tool_runner.tools import rows
from services.tool_runner.tools.rows import TOOL_COLUMNS

_COLUMNS = """
id, name, type, config, secrets, status, problem, tool_problems, metadata, synced_at, created_by_id,
last_updated_by_id, created_at, updated_at, version
"""
_FIND = f"SELECT {_COLUMNS} FROM tool_runner.mcp_servers WHERE organization_id = $1 AND id = $2"
_NAMED = f"SELECT {_COLUMNS} FROM tool_runner.mcp_servers WHERE organization_id = $1 AND name = $2"
_ALL = f"SELECT {_COLUMNS} FROM tool_runner.mcp_servers WHERE organization_id = $1 ORDER BY created_at, id"
_OF_TOOLS = f"""
SELECT {_COLUMNS} FROM tool_runner.mcp_servers
WHERE organization_id = $1 AND id IN (
    SELECT mcp_server_id FROM tool_runner.tools WHERE organization_id = $1 AND id = ANY($2::uuid[]))
ORDER BY name
"""
_COUNT = "SELECT count(*) FROM tool_runner.mcp_servers WHERE organization_id = $1"
_INSERT = f"""
INSERT INTO tool_runner.mcp_servers (
    organization_id, created_by_id, last_updated_by_id, id, name, type, config, secrets, metadata)
VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING
RETURNING {_COLUMNS}
"""
_UPDATE = Statement(f"""
UPDATE tool_runner.mcp_servers
SET name = :name, config = :config, secrets = :secrets, oauth = CASE WHEN :forget_oauth THEN NULL ELSE oauth END,
    status = :status, problem = :problem, last_updated_by_id = :user_id, updated_at = now(), version = version + 1
WHERE organization_id = :organization_id AND id = :id AND version = :version
RETURNING {_COLUMNS}
""")
_NOTE = f"""
UPDATE tool_runner.mcp_servers
SET status = $3::smallint, problem = $4, tool_problems = $5,
    synced_at = CASE WHEN $3::smallint = {Status.CONNECTED:d} THEN now() ELSE synced_at END
WHERE organization_id = $1 AND id = $2
"""
_NOTE_CONTACT = """
UPDATE tool_runner.mcp_servers SET status = $3::smallint, problem = $4 WHERE organization_id = $1 AND id = $2
"""
_DELETE = """
WITH tools AS (DELETE FROM tool_runner.tools WHERE organization_id = $1 AND mcp_server_id = $2)
DELETE FROM tool_runner.mcp_servers WHERE organization_id = $1 AND id = $2 RETURNING id
"""
_TOOLS = f"""
SELECT {TOOL_COLUMNS} FROM tool_runner.tools WHERE organization_id = $1 AND mcp_server_id = $2 ORDER BY name
"""
_TAKEN = """
SELECT name FROM tool_runner.tools
WHERE organization_id = $1 AND name = ANY($2::text[]) AND mcp_server_id IS DISTINCT FROM $3
"""
_DROP = """
DELETE FROM tool_runner.tools WHERE organization_id = $1 AND mcp_server_id = $2 AND id = ANY($3::uuid[])
"""


class PostgresMcpServers:
    """`mcp.ports.McpStore`."""

    def __init__(self, pool: asyncpg.Pool, sealer: Sealer) -> None:
        self._pool = pool
        self._sealer = sealer

    async def insert(self, organization_id: UUID, user_id: UUID, server: Server, most: int) -> Server:
        if present := await self.find(organization_id, server.id):
            return present
        if await self._pool.fetchval(_COUNT, organization_id) >= most:
            raise Refused(INVALID, f"there are {most} MCP servers already; delete one first")
        values = self._values(organization_id, server)
        kind, metadata = server.transport.kind, server.metadata
        row = await self._pool.fetchrow(
            _INSERT, organization_id, user_id, server.id, values[0], kind, *values[1:], metadata
        )
        if row is None:
            if present := await self.find(organization_id, server.id):
                return present
            raise _name_taken(server.name)
        return self._server(organization_id, row)

    async def find(self, organization_id: UUID, server_id: UUID) -> Server | None:
        row = await self._pool.fetchrow(_FIND, organization_id, server_id)
        return self._server(organization_id, row) if row else None

    async def find_by_name(self, organization_id: UUID, name: str) -> Server | None:
        row = await self._pool.fetchrow(_NAMED, organization_id, name)
        return self._server(organization_id, row) if row else None

    async def all(self, organization_id: UUID) -> list[Server]:
        return [self._server(organization_id, row) for row in await self._pool.fetch(_ALL, organization_id)]

    async def of_tools(self, organization_id: UUID, tool_ids: Sequence[UUID]) -> list[Server]:
        rows_ = await self._pool.fetch(_OF_TOOLS, organization_id, list(tool_ids))
        return [self._server(organization_id, row) for row in rows_]

    async def update(
        self, organization_id: UUID, user_id: UUID, server: Server, *, forget_oauth: bool
    ) -> Server | None:
        name, config, secrets = self._values(organization_id, server)
        values = {
            "name": name,
            "config": config,
            "secrets": secrets,
            "status": server.status,
            "problem": server.problem,
        }
        where = {"organization_id": organization_id, "id": server.id, "version": server.version}
        try:
            row = await self._pool.fetchrow(
                *_UPDATE.bind(**where, **values, user_id=user_id, forget_oauth=forget_oauth)
            )
        except asyncpg.UniqueViolationError:
            raise _name_taken(server.name) from None
        return self._server(organization_id, row) if row else None

    async def note(self, organization_id: UUID, server_id: UUID, outcome: SyncOutcome) -> None:
        problems = json.dumps(outcome.tool_problems)
        await self._pool.execute(_NOTE, organization_id, server_id, outcome.status, outcome.problem, problems)

    async def note_contact(self, organization_id: UUID, server_id: UUID, status: Status, problem: str) -> None:
        await self._pool.execute(_NOTE_CONTACT, organization_id, server_id, status, problem)

    async def delete(self, organization_id: UUID, server_id: UUID) -> bool:
        return await self._pool.fetchval(_DELETE, organization_id, server_id) is not None

    async def tools(self, organization_id: UUID, server_id: UUID) -> list[Tool]:
        return [rows.tool(row) for row in await self._pool.fetch(_TOOLS, organization_id, server_id)]

    async def names_in_use(self, organization_id: UUID, names: Collection[str], server_id: UUID) -> set[str]:
        records = await self._pool.fetch(_TAKEN, organization_id, list(names), server_id)
        return {row["name"] for row in records}

    async def drop_tools(self, organization_id: UUID, server_id: UUID, ids: Sequence[UUID]) -> None:
        await self._pool.execute(_DROP, organization_id, server_id, list(ids))

    def _values(self, organization_id: UUID, server: Server) -> tuple[str, str, bytes | None]:
        secrets = model.secrets_text(server.transport)
        bound = _bound(organization_id, server.id)
        sealed = self._sealer.seal(secrets.encode(), bound) if secrets else None
        return server.name, model.config_text(server.transport), sealed

    def _server(self, organization_id: UUID, row: Mapping[str, Any]) -> Server:
        problem, secrets = row["problem"], ""
        if row["secrets"] is not None:
            try:
                secrets = self._sealer.open(row["secrets"], _bound(organization_id, row["id"])).decode()
            except UnreadableSecret as error:
                problem = f"its secrets cannot be read, write them again: {error}"
        return Server(
            id=row["id"],
            name=row["name"],
            transport=model.transport_of(row["type"], row["config"], secrets),
            status=Status(row["status"]),
            problem=problem,
            tool_problems=tuple((name, why) for name, why in json.loads(row["tool_problems"])),
            metadata=row["metadata"],
            synced_at=row["synced_at"],
            created_by_id=row["created_by_id"],
            last_updated_by_id=row["last_updated_by_id"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            version=row["version"],
        )


def _bound(organization_id: UUID, server_id: UUID) -> str:
    return f"tool_runner.mcp_servers/{organization_id}/{server_id}/secrets"


def _name_taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"an MCP server named {name!r} already exists", reason="MCP_SERVER_NAME_TAKEN")
