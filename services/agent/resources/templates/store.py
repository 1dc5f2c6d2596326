"""Templates in Postgres."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.resources.queries import autocommit
from services.agent.resources.tables import templates
from services.agent.resources.templates.model import WORKING, Template, TemplateSettings
from services.common.core.paging import Page, PageOf
from services.common.core.records import record
from services.common.errors import AlreadyExists, NotFound
from services.common.keyset import Keyset

_COLUMNS = "id, name, description, project_id, latest_version, created_at, updated_at"

# $2 template, $3 user, $4 name, $5 description, $6 project, $7 agent file
_CREATE = f"""
WITH made AS (
    INSERT INTO agent.templates (organization_id, id, created_by_id, name, description, project_id, latest_version)
    VALUES ($1, $2, $3, $4, $5, $6, 1)
    ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
), version AS (
    INSERT INTO agent.template_versions (organization_id, template_id, version, agent_file, created_by_id)
    SELECT $1, made.id, number, $7::jsonb, $3 FROM made, generate_series(0, 1) AS number
)
SELECT {_COLUMNS} FROM made
"""
# $2 name, $3 version (null: the newest saved one)
_VERSION = f"""
SELECT {", ".join(f"t.{name}" for name in _COLUMNS.split(", "))}, v.version, v.agent_file
FROM agent.templates t
JOIN agent.template_versions v
    ON v.organization_id = $1 AND v.template_id = t.id AND v.version = coalesce($3::integer, t.latest_version)
WHERE t.organization_id = $1 AND t.name = $2
"""
# Nobody else makes a version now. $2 name
_LOCK = "SELECT id FROM agent.templates WHERE organization_id = $1 AND name = $2 FOR UPDATE"
# $2 template, $3 user, $4 message
_SAVE = """
WITH counted AS (
    UPDATE agent.templates SET latest_version = latest_version + 1, updated_at = clock_timestamp()
    WHERE organization_id = $1 AND id = $2 RETURNING latest_version
)
INSERT INTO agent.template_versions (organization_id, template_id, version, agent_file, message, created_by_id)
SELECT $1, $2, counted.latest_version, v.agent_file, $4, $3
FROM counted, agent.template_versions v
WHERE v.organization_id = $1 AND v.template_id = $2 AND v.version = 0
"""
# $2 template, $3 agent file
_WORK_ON = """
UPDATE agent.template_versions SET agent_file = $3::jsonb, created_at = clock_timestamp()
WHERE organization_id = $1 AND template_id = $2 AND version = 0
"""
_TOUCH = f"""
UPDATE agent.templates SET updated_at = clock_timestamp() WHERE organization_id = $1 AND id = $2 RETURNING {_COLUMNS}
"""
_DELETE = "DELETE FROM agent.templates WHERE organization_id = $1 AND name = $2 RETURNING id"

_KEYSET = Keyset(templates, "template")


class PostgresTemplates:
    """`resources.templates.ports.TemplateStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._reading = autocommit(engine)

    async def create(
        self,
        organization_id: UUID,
        user_id: UUID,
        template_id: UUID,
        settings: TemplateSettings,
        agent_file: Mapping[str, Any],
    ) -> Template:
        values = (settings.name, settings.description, settings.project_id, dict(agent_file))
        row = await self._pool.fetchrow(_CREATE, organization_id, template_id, user_id, *values)
        if row is None:
            raise AlreadyExists(f"There is a template {settings.name} already", reason="TEMPLATE_NAME_TAKEN")
        return Template(**row)

    async def version(
        self, organization_id: UUID, name: str, version: int | None
    ) -> tuple[Template, int, Mapping[str, Any]]:
        row = await self._pool.fetchrow(_VERSION, organization_id, name, version)
        if row is None:
            raise await self._missing_version(organization_id, name, version)
        values = dict(row)
        number, agent_file = values.pop("version"), values.pop("agent_file")
        return Template(**values), number, agent_file

    async def list(self, organization_id: UUID, name: str | None, page: Page) -> PageOf[Template]:
        query = select(templates).where(templates.c.organization_id == organization_id)
        if name is not None:
            query = query.where(templates.c.name == name)
        async with self._reading.connect() as connection:
            rows = await _KEYSET.page(connection, query, page, organization_id)
        return rows.map(lambda row: record(Template, row._mapping))

    async def update(
        self, organization_id: UUID, user_id: UUID, name: str, agent_file: Mapping[str, Any], *, save: bool
    ) -> Template:
        async with self._pool.acquire() as connection, connection.transaction():
            template_id = await _lock(connection, organization_id, name)
            if save:
                await connection.execute(_SAVE, organization_id, template_id, user_id, None)
            await connection.execute(_WORK_ON, organization_id, template_id, dict(agent_file))
            return Template(**await connection.fetchrow(_TOUCH, organization_id, template_id))

    async def save(self, organization_id: UUID, user_id: UUID, name: str, message: str | None) -> Template:
        async with self._pool.acquire() as connection, connection.transaction():
            template_id = await _lock(connection, organization_id, name)
            await connection.execute(_SAVE, organization_id, template_id, user_id, message)
            return Template(**await connection.fetchrow(_TOUCH, organization_id, template_id))

    async def roll_back(self, organization_id: UUID, user_id: UUID, name: str, version: int | None) -> Template:
        async with self._pool.acquire() as connection, connection.transaction():
            template_id = await _lock(connection, organization_id, name)
            row = await connection.fetchrow(_VERSION, organization_id, name, version)
            if row is None or row["version"] == WORKING:
                raise _no_version(name, version)
            await connection.execute(_WORK_ON, organization_id, template_id, row["agent_file"])
            return Template(**await connection.fetchrow(_TOUCH, organization_id, template_id))

    async def delete(self, organization_id: UUID, name: str) -> None:
        if await self._pool.fetchval(_DELETE, organization_id, name) is None:
            raise _no_template(name)

    async def _missing_version(self, organization_id: UUID, name: str, version: int | None) -> NotFound:
        async with self._pool.acquire() as connection, connection.transaction():
            await _lock(connection, organization_id, name)
        return _no_version(name, version)


async def _lock(connection: Any, organization_id: UUID, name: str) -> UUID:
    template_id: UUID | None = await connection.fetchval(_LOCK, organization_id, name)
    if template_id is None:
        raise _no_template(name)
    return template_id


def _no_template(name: str) -> NotFound:
    return NotFound(f"Template {name[:128]} not found", reason="TEMPLATE_NOT_FOUND")


def _no_version(name: str, version: int | None) -> NotFound:
    return NotFound(f"Template {name[:128]} has no version {version}", reason="TEMPLATE_NOT_FOUND")
