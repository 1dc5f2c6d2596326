"""A ProviderStore that keeps everything in this process, and can be away."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from services.common.errors import Unavailable
from services.llm_gateway.core.errors import ProviderNameTaken
from services.llm_gateway.providers.model import Mark, StoredProvider


class ProviderMemory:
    """`reads` counts what was asked of it."""

    def __init__(self) -> None:
        self.rows: dict[tuple[UUID, UUID], StoredProvider] = {}
        self.reads = 0
        self.is_away = False

    def _asked(self) -> None:
        self.reads += 1
        if self.is_away:
            raise Unavailable("away")

    async def list(self, organization_id: UUID) -> Sequence[StoredProvider]:
        self._asked()
        return [row for (organization, _), row in self.rows.items() if organization == organization_id]

    async def marks(self, organization_ids: Sequence[UUID]) -> Mapping[UUID, Mapping[UUID, Mark]]:
        self._asked()
        found: dict[UUID, dict[UUID, Mark]] = {}
        for (organization, id), row in self.rows.items():
            if organization in organization_ids:
                found.setdefault(organization, {})[id] = row.mark
        return found

    async def create(self, provider: StoredProvider) -> tuple[StoredProvider, bool]:
        self._asked()
        key = provider.organization_id, provider.id
        if key in self.rows:
            return self.rows[key], False
        self._check_name(provider)
        now = datetime.now(UTC)
        self.rows[key] = replace(provider, created_at=now, updated_at=now)
        return self.rows[key], True

    async def update(self, provider: StoredProvider) -> StoredProvider | None:
        self._asked()
        key = provider.organization_id, provider.id
        old = self.rows.get(key)
        if old is None or old.version != provider.version:
            return None
        self._check_name(provider)
        self.rows[key] = replace(
            provider, version=old.version + 1, created_at=old.created_at, updated_at=datetime.now(UTC)
        )
        return self.rows[key]

    async def delete(self, organization_id: UUID, provider_id: UUID) -> None:
        self._asked()
        self.rows.pop((organization_id, provider_id), None)

    async def purge_organization(self, organization_id: UUID) -> bool:
        self._asked()
        self.rows = {key: row for key, row in self.rows.items() if key[0] != organization_id}
        return True

    async def synced(self, provider: StoredProvider) -> None:
        key = provider.organization_id, provider.id
        if key in self.rows and self.rows[key].version == provider.version:
            said = replace(self.rows[key], models=provider.models, sync_error=provider.sync_error)
            self.rows[key] = replace(said, synced_at=provider.synced_at)

    def _check_name(self, provider: StoredProvider) -> None:
        for (organization, id), row in self.rows.items():
            if organization == provider.organization_id and id != provider.id and row.name == provider.name:
                raise ProviderNameTaken("taken")
