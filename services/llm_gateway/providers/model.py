"""Stored providers of tenants, and the port of their store. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from services.llm_gateway.core.models import ListedModel

MOST_PROVIDERS = 100


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The settings of a provider, as a client or the operator chooses them. `base_url` empty: the vendor's own."""

    name: str = ""
    provider_type: str = ""
    api_key: str = field(default="", repr=False)
    access_key: str = field(default="", repr=False)
    base_url: str = ""
    region: str = ""
    api_version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """A tenant's provider as it is stored.

    `credentials` are sealed (credentials.py), None where it has none. `models` is what its endpoint listed at
    `synced_at` (None: never), `sync_error` why the last attempt failed ("": it did not).
    """

    organization_id: UUID
    id: UUID
    name: str
    type: str
    base_url: str
    region: str
    api_version: str
    options: Mapping[str, Any]
    credentials: bytes | None = field(repr=False)
    created_by: UUID | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    models: Sequence[ListedModel] | None = None
    synced_at: datetime | None = None
    sync_error: str = ""

    @property
    def mark(self) -> "Mark":
        """Returns the mark by which a change is seen."""
        return self.version, self.synced_at


# Version, and when its models were last listed.
Mark: TypeAlias = tuple[int, datetime | None]


class ProviderStore(Protocol):
    """The providers of all tenants. Every method raises Unavailable while the database is away."""

    async def list(self, organization_id: UUID) -> Sequence[StoredProvider]:
        """Returns a tenant's providers, by name."""
        ...

    async def marks(self, organization_ids: Sequence[UUID]) -> Mapping[UUID, Mapping[UUID, Mark]]:
        """Returns the marks by which changes are seen, by tenant and provider; a tenant without providers is
        left out.
        """
        ...

    async def create(self, provider: StoredProvider) -> tuple[StoredProvider, bool]:
        """Stores a new one; (what is stored, whether it is new): an id that is there is left as it is. Raises
        ProviderNameTaken, and ProviderInvalid where there are MOST_PROVIDERS.
        """
        ...

    async def update(self, provider: StoredProvider) -> StoredProvider | None:
        """Replaces the row of that version, and what it listed is forgotten where `models` is None; None where there is
        no such row. Raises ProviderNameTaken.
        """
        ...

    async def delete(self, organization_id: UUID, provider_id: UUID) -> None:
        """Deletes one, if it is there."""
        ...

    async def purge_organization(self, organization_id: UUID) -> bool:
        """Erases rows of the tenant in all tables of the service; False while there are some left. May be repeated."""
        ...

    async def synced(self, provider: StoredProvider) -> None:
        """Stores what its endpoint listed, or why it did not, unless the row has another version by now."""
        ...
