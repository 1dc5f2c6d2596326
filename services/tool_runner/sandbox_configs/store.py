"""Variables and sandbox settings on Postgres, with prepared statements."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.paging import Page, PageOf
from services.common.errors import AlreadyExists
from services.common.purge import purge_rows
from services.tool_runner.database import DatabasePool, Where, database_reached
from services.tool_runner.errors import no_such_config, no_such_tool
from services.tool_runner.keyset import Keyset
from services.tool_runner.sandbox_configs.model import (
    Owner,
    Rewrite,
    SandboxConfig,
    Scope,
    SealedValue,
    StoredVariable,
    Variable,
)
from services.tool_runner.sandbox_configs.ports import CallSettings
from services.tool_runner.sandbox_configs.rules import variables

_VARIABLE = (
    "id, scope, owner_id, key, octet_length(value) AS size, description, created_by_id, last_updated_by_id, created_at,"
    " updated_at"
)
_CONFIG = "id, type, config, created_by_id, last_updated_by_id, created_at, updated_at"
_OF = "organization_id = $1 AND scope = $2 AND owner_id = $3"

# The settings first; then the variables, those that win last.
_OF_CALL = """
WITH config AS MATERIALIZED (
    SELECT id, config FROM tool_runner.sandbox_configs WHERE organization_id = $1 AND type = $2)
SELECT 0 AS place, id, config AS key, NULL::bytea AS value FROM config
UNION ALL
SELECT CASE scope WHEN 'sandbox' THEN 1 WHEN 'tool' THEN 2 ELSE 3 END, id, key, value FROM tool_runner.variables
WHERE organization_id = $1 AND (
    scope = 'sandbox' AND owner_id = (SELECT id FROM config)
    OR scope = 'tool' AND owner_id = $3
    OR scope = 'agent' AND owner_id = $4)
ORDER BY place
"""
# Who sets an owner's variables does it after the others.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('tool_runner.variables/' || $1::text, 0))"
_TOOL = "SELECT FROM tool_runner.tools WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
_KEYS = f"SELECT key, id FROM tool_runner.variables WHERE {_OF}"
_DELETE_OTHERS = f"DELETE FROM tool_runner.variables WHERE {_OF} AND key <> ALL($4::text[])"
_WRITE = """
INSERT INTO tool_runner.variables (
    organization_id, scope, owner_id, id, key, value, description, created_by_id, last_updated_by_id)
SELECT $1, $2, $3, new.id, new.key, new.value, new.description, $8, $8
FROM unnest($4::uuid[], $5::text[], $6::bytea[], $7::text[]) AS new (id, key, value, description)
ON CONFLICT (organization_id, id) DO UPDATE SET
    value = excluded.value, last_updated_by_id = excluded.last_updated_by_id, updated_at = now(),
    description = CASE WHEN excluded.description = '' THEN variables.description ELSE excluded.description END
"""
_OF_OWNER = f"SELECT {_VARIABLE} FROM tool_runner.variables WHERE {_OF} ORDER BY key"
_VALUES = "SELECT id, key, value FROM tool_runner.variables WHERE organization_id = $1 AND id = ANY($2::uuid[])"
_BATCH = f"""
SELECT {_VARIABLE} FROM tool_runner.variables
WHERE organization_id = $1 AND (scope, owner_id) IN (SELECT * FROM unnest($2::text[], $3::uuid[])) ORDER BY key
"""
_PURGE = f"WITH gone AS (DELETE FROM tool_runner.variables WHERE {_OF} RETURNING 1) SELECT count(*) FROM gone"

_CREATE_CONFIG = f"""
INSERT INTO tool_runner.sandbox_configs (organization_id, created_by_id, last_updated_by_id, id, type, config)
VALUES ($1, $2, $2, $3, $4, $5) ON CONFLICT (organization_id, type) DO NOTHING RETURNING {_CONFIG}
"""
_CONFIG_BY_ID = f"SELECT {_CONFIG} FROM tool_runner.sandbox_configs WHERE organization_id = $1 AND id = $2"
_CONFIG_OF = f"SELECT {_CONFIG} FROM tool_runner.sandbox_configs WHERE organization_id = $1 AND type = $2"
_UPDATE_CONFIG = f"""
UPDATE tool_runner.sandbox_configs SET config = $4, last_updated_by_id = $2, updated_at = now()
WHERE organization_id = $1 AND id = $3 RETURNING {_CONFIG}
"""
_DELETE_CONFIG = """
WITH variables AS (
    DELETE FROM tool_runner.variables WHERE organization_id = $1 AND scope = 'sandbox' AND owner_id = $2)
DELETE FROM tool_runner.sandbox_configs WHERE organization_id = $1 AND id = $2 RETURNING id
"""
# Held, so that nobody deletes the settings meanwhile.
_HOLD_CONFIG = "SELECT FROM tool_runner.sandbox_configs WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
_COUNT = f"SELECT count(*) FROM tool_runner.variables WHERE {_OF}"
_CREATE_VARIABLE = f"""
INSERT INTO tool_runner.variables (
    organization_id, created_by_id, last_updated_by_id, scope, owner_id, id, key, value, description)
VALUES ($1, $2, $2, 'sandbox', $3, $4, $5, $6, $7) RETURNING {_VARIABLE}
"""
_UPDATE_VARIABLE = f"""
UPDATE tool_runner.variables
SET key = coalesce($4, key), value = coalesce($5, value), description = coalesce($6, description),
    last_updated_by_id = $2, updated_at = now()
WHERE organization_id = $1 AND id = $3 AND scope = 'sandbox' RETURNING {_VARIABLE}
"""
_DELETE_VARIABLE = """
DELETE FROM tool_runner.variables WHERE organization_id = $1 AND id = $2 AND scope = 'sandbox' RETURNING id
"""

_CONFIGS = Keyset("tool_runner.sandbox_configs", "sandbox")
_VARIABLES = Keyset("tool_runner.variables", "sandbox-env")


class PostgresSandboxConfigs:
    """`sandbox_configs.ports.SandboxConfigStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def of_call(self, organization_id: UUID, kind: str, tool_id: UUID, agent_id: UUID | None) -> CallSettings:
        async with database_reached():
            rows = await self._pool.fetch(_OF_CALL, organization_id, kind, tool_id, agent_id)
        config = next((row["key"] for row in rows if row["place"] == 0), "")
        return CallSettings(config, [SealedValue(row["id"], row["key"], row["value"]) for row in rows if row["place"]])

    async def replace(self, organization_id: UUID, user_id: UUID, owner: Owner, rewrite: Rewrite) -> list[Variable]:
        key = organization_id, owner.scope.value, owner.id
        async with database_reached(), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_ONE_AT_A_TIME, str(owner.id))
            if owner.scope is Scope.TOOL and await connection.fetchrow(_TOOL, organization_id, owner.id) is None:
                raise no_such_tool(owner.id)
            written = rewrite({row["key"]: row["id"] for row in await connection.fetch(_KEYS, *key)})
            await connection.execute(_DELETE_OTHERS, *key, [variable.key for variable in written])
            if new := [variable for variable in written if variable.value is not None]:
                columns = ([getattr(each, name) for each in new] for name in ("id", "key", "value", "description"))
                await connection.execute(_WRITE, *key, *columns, user_id)
            return [_variable(row) for row in await connection.fetch(_OF_OWNER, *key)]

    async def batch(self, organization_id: UUID, owners: Sequence[Owner]) -> list[Variable]:
        scopes, ids = [owner.scope.value for owner in owners], [owner.id for owner in owners]
        async with database_reached():
            return [_variable(row) for row in await self._pool.fetch(_BATCH, organization_id, scopes, ids)]

    async def values(self, organization_id: UUID, variable_ids: Sequence[UUID]) -> list[SealedValue]:
        async with database_reached():
            rows = await self._pool.fetch(_VALUES, organization_id, variable_ids)
        return [SealedValue(row["id"], row["key"], row["value"]) for row in rows]

    async def purge(self, organization_id: UUID, owner: Owner) -> int:
        async with database_reached():
            return int(await self._pool.fetchval(_PURGE, organization_id, owner.scope.value, owner.id))

    async def purge_organization(self, organization_id: UUID) -> bool:
        async with database_reached():
            return await purge_rows(self._pool, "tool_runner", organization_id)

    async def create_config(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, kind: str, config: str
    ) -> SandboxConfig | None:
        return await self._config(_CREATE_CONFIG, organization_id, user_id, config_id, kind, config)

    async def config_of(self, organization_id: UUID, kind: str) -> SandboxConfig | None:
        return await self._config(_CONFIG_OF, organization_id, kind)

    async def config(self, organization_id: UUID, config_id: UUID) -> SandboxConfig | None:
        return await self._config(_CONFIG_BY_ID, organization_id, config_id)

    async def configs(self, organization_id: UUID, kind: str, page: Page) -> PageOf[SandboxConfig]:
        where = Where(organization_id)
        if kind:
            where.add("type = {}", kind)
        rows = await _CONFIGS.page(DatabasePool(self._pool), _CONFIG, where, page)
        return rows.map(lambda row: SandboxConfig(**row))

    async def update_config(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, config: str
    ) -> SandboxConfig | None:
        return await self._config(_UPDATE_CONFIG, organization_id, user_id, config_id, config)

    async def delete_config(self, organization_id: UUID, config_id: UUID) -> bool:
        async with database_reached():
            return await self._pool.fetchval(_DELETE_CONFIG, organization_id, config_id) is not None

    async def create_variable(
        self, organization_id: UUID, user_id: UUID, config_id: UUID, written: StoredVariable, most: int
    ) -> Variable:
        values = written.id, written.key, written.value, written.description
        async with database_reached(), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_ONE_AT_A_TIME, str(config_id))
            if await connection.fetchrow(_HOLD_CONFIG, organization_id, config_id) is None:
                raise no_such_config(config_id)
            if await connection.fetchval(_COUNT, organization_id, Scope.SANDBOX.value, config_id) >= most:
                raise variables.invalid(f"there are {most} environment variables, and there can be no more")
            with _unique_key(written.key):
                return _variable(
                    await connection.fetchrow(_CREATE_VARIABLE, organization_id, user_id, config_id, *values)
                )

    async def variables(self, organization_id: UUID, config_id: UUID, page: Page) -> PageOf[Variable]:
        where, pool = Where(organization_id), DatabasePool(self._pool)
        where.add("scope = 'sandbox' AND owner_id = {}", config_id)
        rows = await _VARIABLES.page(pool, _VARIABLE, where, page)
        if not rows.items and await pool.fetchrow(_HOLD_CONFIG, organization_id, config_id) is None:
            raise no_such_config(config_id)
        return rows.map(_variable)

    async def update_variable(
        self,
        organization_id: UUID,
        user_id: UUID,
        variable_id: UUID,
        *,
        key: str | None = None,
        value: bytes | None = None,
        description: str | None = None,
    ) -> Variable | None:
        values = organization_id, user_id, variable_id, key, value, description
        async with database_reached():
            with _unique_key(key or ""):
                row = await self._pool.fetchrow(_UPDATE_VARIABLE, *values)
        return _variable(row) if row else None

    async def delete_variable(self, organization_id: UUID, variable_id: UUID) -> bool:
        async with database_reached():
            return await self._pool.fetchval(_DELETE_VARIABLE, organization_id, variable_id) is not None

    async def _config(self, statement: str, *values: object) -> SandboxConfig | None:
        async with database_reached():
            row = await self._pool.fetchrow(statement, *values)
        return SandboxConfig(**row) if row else None


def _variable(row: Mapping[str, Any]) -> Variable:
    values = dict(row)
    owner = Owner(Scope(values.pop("scope")), values.pop("owner_id"))
    return Variable(owner=owner, **values)


@contextmanager
def _unique_key(key: str) -> Iterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError:
        sentence = f"there is an environment variable {key} already; change that one"
        raise AlreadyExists(sentence, reason="VARIABLE_EXISTS") from None
