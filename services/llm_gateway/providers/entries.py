"""Entries: configured providers with their overrides of models and the list of their endpoint."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID, uuid5

from services.common.errors import Unavailable
from services.llm_gateway.core.errors import CredentialsUnreadable, LlmError
from services.llm_gateway.core.overrides import InvalidOverride, OperatorOverrides, ProviderOverrides, names
from services.llm_gateway.core.provider_config import NO_KEY, ProviderConfig
from services.llm_gateway.providers.credentials import Credentials, Vault
from services.llm_gateway.providers.listings import Listing
from services.llm_gateway.providers.model import ProviderStore, StoredProvider
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.validation import is_vendors

logger = logging.getLogger(__name__)

# Of the ids of the operator's providers, which are made from their names.
_OPERATORS = UUID("6a0d1c38-52f5-5d0e-9d0b-0c2f8b1f7e55")


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """`stored` is the row of a tenant's, None for the operator's; `problem` is why it cannot be called."""

    config: ProviderConfig
    overrides: ProviderOverrides
    listing: Listing
    stored: StoredProvider | None = None
    problem: LlmError | None = None

    @property
    def id(self) -> UUID:
        """Returns the id of the row, or one made from the name."""
        return self.stored.id if self.stored is not None else uuid5(_OPERATORS, self.config.name)

    def usable(self) -> "ProviderEntry":
        """Returns the entry itself. Raises what keeps it from being called."""
        if self.problem is not None:
            raise self.problem
        return self


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, as in ProviderConfig; `listing` is how long an endpoint gets to list its models."""

    stall: float = 300.0
    reply: float = 600.0
    listing: float = 2.0


class ProviderEntryFactory:
    """The factory of entries, from the operator's configurations and from tenants' rows."""

    def __init__(
        self,
        providers: ProviderRegistry,
        store: ProviderStore,
        vault: Vault,
        *,
        patience: Patience,
        allow_private: bool,
    ) -> None:
        self._providers = providers
        self._store = store
        self._vault = vault
        self._patience = patience
        self._allow_private = allow_private

    def operators(self, configs: Iterable[ProviderConfig], overrides: OperatorOverrides) -> dict[str, ProviderEntry]:
        """Returns the operator's providers by name."""
        entries = (ProviderEntry(config, _merge(config, overrides), self._listing(config)) for config in configs)
        return {one.config.name: one for one in entries}

    def of_row(self, row: StoredProvider, before: ProviderEntry | None) -> ProviderEntry:
        """Returns a tenant's provider; the list of models in `before` is kept where it is the same version."""
        if before is not None and before.config.version == row.version:
            listing = before.listing
            if row.synced_at is not None and (listing.synced_at is None or row.synced_at > listing.synced_at):
                listing.remember(row.models, row.synced_at)
            return replace(before, stored=row)
        problem, credentials = None, Credentials()
        try:
            credentials = self._vault.open(row)
        except CredentialsUnreadable as error:
            logger.warning("%s", error.message)
            problem = error
        config = self.config(row, credentials)
        listing = self._listing(config, row)
        listing.remember(row.models, row.synced_at)
        return ProviderEntry(config, _overrides(row), listing, row, problem)

    def config(self, row: StoredProvider, credentials: Credentials) -> ProviderConfig:
        """Returns the configuration of a row, stored or not."""
        return ProviderConfig(
            name=row.name,
            type=row.type,
            base_url=row.base_url,
            api_key=credentials.api_key or NO_KEY,
            key_setting=f"the api_key of provider {row.name}",
            url_setting=f"the base_url of provider {row.name}",
            is_vendor=is_vendors(row.type, row.base_url),
            stall_seconds=self._patience.stall,
            reply_seconds=self._patience.reply,
            organization_id=row.organization_id,
            id=row.id,
            version=row.version,
            access_key=credentials.access_key,
            region=row.region,
            api_version=row.api_version,
            options={name: value for name, value in row.options.items() if name != "models"},
            allow_private=self._allow_private,
        )

    def _listing(self, config: ProviderConfig, row: StoredProvider | None = None) -> Listing:
        async def keep(listing: Listing) -> None:
            assert row is not None
            models = None if listing.models is None else tuple(listing.models.values())
            synced = replace(row, models=models, synced_at=listing.synced_at, sync_error=listing.error_text)
            try:
                await self._store.synced(synced)
            except Unavailable as error:
                logger.warning("what provider %s lists cannot be stored now: %s", config.name, error.message)

        timeout = self._patience.listing
        return Listing(self._providers, config, timeout=timeout, keep=None if row is None else keep)


def _merge(config: ProviderConfig, overrides: OperatorOverrides) -> ProviderOverrides:
    """Returns the provider's overrides; the operator's by handle go before those of the provider's own options."""
    own, by_handle = _named_models(config.options), overrides.of_provider(config.name)
    return ProviderOverrides({**own.models, **by_handle.models}, by_handle.price)


def _overrides(row: StoredProvider) -> ProviderOverrides:
    return _named_models(row.options)


def _named_models(options: object) -> ProviderOverrides:
    models = options.get("models") if hasattr(options, "get") else None
    try:
        return names(models or {})
    except InvalidOverride as wrong:
        # It was checked when it was stored; rules may have become stricter since.
        logger.warning("the option `models` of a provider is passed over: %s", wrong)
        return ProviderOverrides()
