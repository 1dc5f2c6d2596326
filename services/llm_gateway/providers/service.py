"""The administration of a tenant's providers: they are created, changed, checked, deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.common.core.drafts import Draft
from services.llm_gateway.core.errors import (
    CredentialsUnreadable,
    ProviderChanged,
    ProviderInvalid,
    ProviderNameTaken,
    ProviderNotFound,
    ProviderReadOnly,
)
from services.llm_gateway.providers.credentials import Credentials, Vault
from services.llm_gateway.providers.entries import ProviderEntry, ProviderEntryFactory
from services.llm_gateway.providers.listings import list_models
from services.llm_gateway.providers.model import ProviderSettings, ProviderStore, StoredProvider
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.tenant_cache import TenantProviderCache
from services.llm_gateway.providers.validation import addresses, validate

# Whoever asks for the models waits longer than a turn does.
ASKED_SECONDS = 10.0


class ProviderService:
    """The administration. Every method takes the tenant; all tenants may read, check and refresh the operator's."""

    def __init__(
        self,
        tenants: TenantProviderCache,
        operators: Mapping[str, ProviderEntry],
        store: ProviderStore,
        vault: Vault,
        factory: ProviderEntryFactory,
        providers: ProviderRegistry,
        *,
        allow_private: bool,
    ) -> None:
        self._tenants = tenants
        self._operators = operators
        self._store = store
        self._vault = vault
        self._factory = factory
        self._providers = providers
        self._allow_private = allow_private

    async def create(
        self, organization_id: UUID, user_id: UUID, provider_id: UUID, settings: ProviderSettings
    ) -> ProviderEntry:
        """Stores one and asks for its models. Raises ProviderInvalid, ProviderNameTaken."""
        settings = validate(settings, allow_private=self._allow_private)
        self._check_free(settings.name)
        row = self._row(settings, organization_id, provider_id)
        _, is_new = await self._store.create(replace(row, created_by=user_id))
        entry = await self._mine(organization_id, provider_id)
        if not is_new:
            return entry
        await entry.listing.ask(ASKED_SECONDS)
        return await self._mine(organization_id, provider_id)

    async def get(self, organization_id: UUID, provider_id: UUID) -> ProviderEntry:
        """Returns one provider. Raises ProviderNotFound."""
        for one in self._operators.values():
            if one.id == provider_id:
                return one
        return await self._mine(organization_id, provider_id)

    async def list(self, organization_id: UUID, name: str, provider_type: str) -> Sequence[ProviderEntry]:
        """Returns the tenant's and the operator's, by name; perhaps only those of a name or type."""
        mine = await self._tenants.read(organization_id)
        everything = (*mine.values(), *self._operators.values())
        entries = [
            one for one in everything if name in ("", one.config.name) and provider_type in ("", one.config.type)
        ]
        return sorted(entries, key=lambda one: (one.config.name, one.stored is None))

    async def update(
        self, organization_id: UUID, provider_id: UUID, draft: Draft[ProviderSettings], version: int | None
    ) -> ProviderEntry:
        """Changes the fields of the draft, and asks for the models anew where it is reached another way now. Raises
        ProviderNotFound, ProviderInvalid, ProviderNameTaken, ProviderChanged, ProviderReadOnly.
        """
        self._refuse_operators(provider_id)
        before = await self._mine(organization_id, provider_id)
        assert before.stored is not None
        if version is not None and version != before.stored.version:
            raise _conflict(before)
        settings = validate(self._apply(before, draft), allow_private=self._allow_private)
        if settings.name != before.config.name:
            self._check_free(settings.name)
        row = self._row(settings, organization_id, provider_id)
        if "api_key" not in draft.names:
            _refuse_elsewhere(before.stored, row)
        is_same_key = not draft.names & {"api_key", "access_key"}
        if is_same_key:
            row = replace(row, credentials=before.stored.credentials)
        has_moved = _address(row) != _address(before.stored)
        models = None if has_moved else before.stored.models
        stored = await self._store.update(replace(row, version=before.stored.version, models=models))
        if stored is None:
            raise _conflict(before)
        after = await self._mine(organization_id, provider_id)
        if has_moved or not is_same_key:
            await after.listing.ask(ASKED_SECONDS)
            after = await self._mine(organization_id, provider_id)
        return after

    async def delete(self, organization_id: UUID, provider_id: UUID) -> None:
        """Deletes one, if it is there. Raises ProviderReadOnly."""
        self._refuse_operators(provider_id)
        await self._store.delete(organization_id, provider_id)
        await self._tenants.read(organization_id)

    async def purge_organization(self, organization_id: UUID) -> bool:
        """See `ProviderStore.purge_organization`; the keys are forgotten here, too."""
        done = await self._store.purge_organization(organization_id)
        await self._tenants.read(organization_id)
        return done

    async def check(self, organization_id: UUID, provider_id: UUID) -> int:
        """Returns how many models a stored one lists. Raises ProviderNotFound, and what the endpoint answers."""
        one = (await self.get(organization_id, provider_id)).usable()
        return len(await list_models(await self._providers.get(one.config), one.config, ASKED_SECONDS))

    async def check_settings(self, organization_id: UUID, settings: ProviderSettings) -> int:
        """Returns the same of one that is not stored. Raises ProviderInvalid, and what the endpoint answers."""
        settings = validate(settings, allow_private=self._allow_private)
        row = self._row(settings, organization_id, UUID(int=0))
        config = self._factory.config(row, Credentials(settings.api_key, settings.access_key))
        provider = await self._providers.once(config)
        try:
            return len(await list_models(provider, config, ASKED_SECONDS))
        finally:
            await provider.close()

    async def refresh(self, organization_id: UUID, provider_id: UUID) -> ProviderEntry:
        """Asks for the models anew. Raises ProviderNotFound, and what the endpoint answers."""
        one = (await self.get(organization_id, provider_id)).usable()
        await one.listing.ask(ASKED_SECONDS)
        if one.listing.error is not None:
            raise one.listing.error
        return await self.get(organization_id, provider_id)

    async def _mine(self, organization_id: UUID, provider_id: UUID) -> ProviderEntry:
        for one in (await self._tenants.read(organization_id)).values():
            if one.id == provider_id:
                return one
        raise ProviderNotFound(f"There is no provider provider-{provider_id}; GET /v1/providers lists those there are.")

    def _check_free(self, name: str) -> None:
        if name in self._operators:
            sentence = f"The operator has a provider {name!r}, whose handles begin like that; choose another name."
            raise ProviderNameTaken(sentence, provider=name)

    def _refuse_operators(self, provider_id: UUID) -> None:
        for one in self._operators.values():
            if one.id == provider_id:
                sentence = (
                    f"Provider {one.config.name} is configured in the environment of the server, and there alone."
                )
                raise ProviderReadOnly(sentence, provider=one.config.name)

    def _row(self, settings: ProviderSettings, organization_id: UUID, provider_id: UUID) -> StoredProvider:
        credentials = Credentials(settings.api_key, settings.access_key)
        return StoredProvider(
            organization_id=organization_id,
            id=provider_id,
            name=settings.name,
            type=settings.provider_type,
            base_url=settings.base_url,
            region=settings.region,
            api_version=settings.api_version,
            options=settings.options,
            credentials=self._vault.seal(credentials, organization_id, provider_id),
        )

    def _apply(self, before: ProviderEntry, draft: Draft[ProviderSettings]) -> ProviderSettings:
        """Returns the settings as they will be. Raises CredentialsUnreadable where an old key is needed and cannot be
        read.
        """
        row = before.stored
        assert row is not None
        try:
            old = self._vault.open(row)
        except CredentialsUnreadable:
            if "api_key" not in draft.names:
                raise
            old = Credentials()
        settings = ProviderSettings(
            name=row.name,
            provider_type=row.type,
            api_key=old.api_key,
            access_key=old.access_key,
            base_url=row.base_url,
            region=row.region,
            api_version=row.api_version,
            options=row.options,
        )
        return replace(settings, **{name: getattr(draft.values, name) for name in draft.names})


def _address(row: StoredProvider) -> tuple[Any, ...]:
    """Returns the settings that decide where its models are listed."""
    options = {name: value for name, value in row.options.items() if name not in ("models", "max_concurrency")}
    return row.base_url, row.region, row.api_version, options


def _refuse_elsewhere(old: StoredProvider, row: StoredProvider) -> None:
    """Raises ProviderInvalid where a stored key would go to another address than the one it was given for."""
    if old.credentials is not None and addresses(row.base_url, row.options) != addresses(old.base_url, old.options):
        raise ProviderInvalid(
            "base_url: with a new address comes a new api_key, so that the stored key is sent nowhere it was not meant "
            "for.",
            provider=row.name,
        )


def _conflict(before: ProviderEntry) -> ProviderChanged:
    return ProviderChanged(
        f"Provider {before.config.name} was changed meanwhile; read it again.", provider=before.config.name
    )
