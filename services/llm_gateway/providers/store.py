"""Tenants' providers in Postgres (schema llm_gateway)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg

from services.common.database import reached
from services.common.purge import purge_rows
from services.llm_gateway.core.errors import ProviderInvalid, ProviderNameTaken
from services.llm_gateway.providers.listing_json import from_json, to_json
from services.llm_gateway.providers.model import MOST_PROVIDERS, Mark, StoredProvider

_COLUMNS = (
    "organization_id, id, name, type, base_url, region, api_version, options, credentials, created_by, version,"
    " created_at, updated_at, models, synced_at, sync_error"
)
_LIST = f"SELECT {_COLUMNS} FROM llm_gateway.providers WHERE organization_id = $1 ORDER BY name"
_MARKS = "SELECT organization_id, id, version, synced_at FROM llm_gateway.providers WHERE organization_id = ANY($1)"
_GET = f"SELECT {_COLUMNS} FROM llm_gateway.providers WHERE organization_id = $1 AND id = $2"
# One of a tenant at a time, so that there are never more of them than allowed.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('llm_gateway.providers/' || $1::text, 0))"
_COUNT = "SELECT count(*) FROM llm_gateway.providers WHERE organization_id = $1"
_INSERT = f"""
INSERT INTO llm_gateway.providers
    (organization_id, id, name, type, base_url, region, api_version, options, credentials, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING {_COLUMNS}
"""
_UPDATE = f"""
UPDATE llm_gateway.providers
SET name = $4, base_url = $5, region = $6, api_version = $7, options = $8, credentials = $9,
    version = version + 1, updated_at = now(),
    models = CASE WHEN $10 THEN models END,
    synced_at = CASE WHEN $10 THEN synced_at END,
    sync_error = CASE WHEN $10 THEN sync_error ELSE '' END
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
        async with _there():
            return [_provider(row) for row in await self._pool.fetch(_LIST, organization_id)]

    async def marks(self, organization_ids: Sequence[UUID]) -> Mapping[UUID, Mapping[UUID, Mark]]:
        """See ProviderStore.marks."""
        marks: dict[UUID, dict[UUID, Mark]] = {}
        async with _there():
            for row in await self._pool.fetch(_MARKS, list(organization_ids)):
                marks.setdefault(row["organization_id"], {})[row["id"]] = row["version"], row["synced_at"]
        return marks

    async def create(self, provider: StoredProvider) -> tuple[StoredProvider, bool]:
        """See ProviderStore.create."""
        key = provider.organization_id, provider.id
        async with _there(), _named(provider), self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_ONE_AT_A_TIME, str(provider.organization_id))
            if row := await connection.fetchrow(_GET, *key):
                return _provider(row), False
            if await connection.fetchval(_COUNT, provider.organization_id) >= MOST_PROVIDERS:
                sentence = f"There are {MOST_PROVIDERS} providers, and there can be no more; delete some first."
                raise ProviderInvalid(sentence, provider=provider.name)
            values = (*key, provider.name, provider.type, *_settings(provider), provider.created_by)
            return _provider(await connection.fetchrow(_INSERT, *values)), True

    async def update(self, provider: StoredProvider) -> StoredProvider | None:
        """See ProviderStore.update."""
        key = provider.organization_id, provider.id, provider.version
        async with _there(), _named(provider):
            values = (*key, provider.name, *_settings(provider), provider.models is not None)
            row = await self._pool.fetchrow(_UPDATE, *values)
        return None if row is None else _provider(row)

    async def delete(self, organization_id: UUID, provider_id: UUID) -> None:
        """See ProviderStore.delete."""
        async with _there():
            await self._pool.execute(_DELETE, organization_id, provider_id)

    async def purge_organization(self, organization_id: UUID) -> bool:
        """See ProviderStore.purge_organization."""
        async with _there():
            return await purge_rows(self._pool, "llm_gateway", organization_id)

    async def synced(self, provider: StoredProvider) -> None:
        """See ProviderStore.synced."""
        key = provider.organization_id, provider.id, provider.version
        models = None if provider.models is None else to_json(provider.models)
        async with _there():
            await self._pool.execute(_SYNCED, *key, models, provider.synced_at, provider.sync_error)


def _settings(provider: StoredProvider) -> tuple[Any, ...]:
    return provider.base_url, provider.region, provider.api_version, dict(provider.options), provider.credentials


def _provider(row: Mapping[str, Any]) -> StoredProvider:
    fields = dict(row)
    fields["models"] = None if fields["models"] is None else from_json(fields["models"])
    return StoredProvider(**fields)


def _there() -> AbstractAsyncContextManager[None]:
    return reached("the llm gateway")


@asynccontextmanager
async def _named(provider: StoredProvider) -> AsyncIterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        sentence = f"There is a provider {provider.name!r} already; choose another name, or change that one."
        raise ProviderNameTaken(sentence, provider=provider.name) from error
