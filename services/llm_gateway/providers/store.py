"""Tenants' providers in Postgres (schema llm_gateway)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.records import columns, record
from services.common.database import database_guard
from services.common.purge import purge_rows
from services.llm_gateway.core.errors import ProviderInvalid, ProviderNameTaken
from services.llm_gateway.core.listing_json import from_json, to_json
from services.llm_gateway.providers.model import MOST_PROVIDERS, Mark, StoredProvider

_COLUMNS = ", ".join(one.name for one in fields(StoredProvider))
# What a client sets at creation alone, and what it may change later.
_CREATED = ("organization_id", "id", "type", "created_by")
_SETTINGS = ("name", "base_url", "region", "api_version", "options", "credentials")
_LIST = f"SELECT {_COLUMNS} FROM llm_gateway.providers WHERE organization_id = $1 ORDER BY name"
_MARKS = "SELECT organization_id, id, version, synced_at FROM llm_gateway.providers WHERE organization_id = ANY($1)"
_GET = f"SELECT {_COLUMNS} FROM llm_gateway.providers WHERE organization_id = $1 AND id = $2"
# One of a tenant at a time, so that there are never more of them than allowed.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('llm_gateway.providers/' || $1::text, 0))"
_COUNT = "SELECT count(*) FROM llm_gateway.providers WHERE organization_id = $1"
_INSERT = f"""
INSERT INTO llm_gateway.providers ({", ".join((*_CREATED, *_SETTINGS))})
VALUES ({", ".join(f"${n}" for n in range(1, len(_CREATED) + len(_SETTINGS) + 1))}) RETURNING {_COLUMNS}
"""
_UPDATE = f"""
UPDATE llm_gateway.providers
SET {", ".join(f"{name} = ${n}" for n, name in enumerate(_SETTINGS, 5))}, version = version + 1, updated_at = now(),
    models = CASE WHEN $4 THEN models END,
    synced_at = CASE WHEN $4 THEN synced_at END,
    sync_error = CASE WHEN $4 THEN sync_error ELSE '' END
WHERE organization_id = $1 AND id = $2 AND version = $3 RETURNING {_COLUMNS}
"""
_DELETE = "DELETE FROM llm_gateway.providers WHERE organization_id = $1 AND id = $2"
_SYNCED = """
UPDATE llm_gateway.providers SET models = $4, synced_at = $5, sync_error = $6
WHERE organization_id = $1 AND id = $2 AND version = $3
"""


class PostgresProviderStore:
    """A ProviderStore."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def list(self, organization_id: UUID) -> Sequence[StoredProvider]:
        """See ProviderStore.list."""
        async with _database():
            return [_provider(row) for row in await self._pool.fetch(_LIST, organization_id)]

    async def marks(self, organization_ids: Sequence[UUID]) -> Mapping[UUID, Mapping[UUID, Mark]]:
        """See ProviderStore.marks."""
        marks: dict[UUID, dict[UUID, Mark]] = {}
        async with _database():
            for row in await self._pool.fetch(_MARKS, list(organization_ids)):
                marks.setdefault(row["organization_id"], {})[row["id"]] = row["version"], row["synced_at"]
        return marks

    async def create(self, provider: StoredProvider) -> tuple[StoredProvider, bool]:
        """See ProviderStore.create."""
        key = provider.organization_id, provider.id
        async with _database(), _unique_name(provider), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_ONE_AT_A_TIME, str(provider.organization_id))
            if row := await connection.fetchrow(_GET, *key):
                return _provider(row), False
            if await connection.fetchval(_COUNT, provider.organization_id) >= MOST_PROVIDERS:
                sentence = f"There are {MOST_PROVIDERS} providers, and there can be no more; delete some first."
                raise ProviderInvalid(sentence, provider=provider.name)
            values = columns(provider, (*_CREATED, *_SETTINGS)).values()
            return _provider(await connection.fetchrow(_INSERT, *values)), True

    async def update(self, provider: StoredProvider) -> StoredProvider | None:
        """See ProviderStore.update."""
        key = provider.organization_id, provider.id, provider.version
        async with _database(), _unique_name(provider):
            values = (*key, provider.models is not None, *columns(provider, _SETTINGS).values())
            row = await self._pool.fetchrow(_UPDATE, *values)
        return None if row is None else _provider(row)

    async def delete(self, organization_id: UUID, provider_id: UUID) -> None:
        """See ProviderStore.delete."""
        async with _database():
            await self._pool.execute(_DELETE, organization_id, provider_id)

    async def purge_organization(self, organization_id: UUID) -> bool:
        """See ProviderStore.purge_organization."""
        async with _database():
            return await purge_rows(self._pool, "llm_gateway", organization_id)

    async def synced(self, provider: StoredProvider) -> None:
        """See ProviderStore.synced."""
        key = provider.organization_id, provider.id, provider.version
        models = None if provider.models is None else to_json(provider.models)
        async with _database():
            await self._pool.execute(_SYNCED, *key, models, provider.synced_at, provider.sync_error)


def _provider(row: Mapping[str, Any]) -> StoredProvider:
    models = row["models"]
    return record(StoredProvider, dict(row) | {"models": None if models is None else from_json(models)})


def _database() -> AbstractAsyncContextManager[None]:
    return database_guard("the llm gateway")


@asynccontextmanager
async def _unique_name(provider: StoredProvider) -> AsyncIterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        sentence = f"There is a provider {provider.name!r} already; choose another name, or change that one."
        raise ProviderNameTaken(sentence, provider=provider.name) from error
