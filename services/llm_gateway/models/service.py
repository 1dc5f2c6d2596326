"""The catalogue of a tenant's models: those of its own providers and of the operator's.

Figures of models (core/model_figures.py) come from memory: overrides, tables, and the lists of endpoints
(providers/listings.py). A turn is never kept waiting where memory or a table knows its model.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from services.common.errors import Unavailable
from services.llm_gateway.core.errors import EmbeddingNotFound, ModelNotFound
from services.llm_gateway.core.known_models import EMBEDDINGS, known, known_embedding
from services.llm_gateway.core.model_figures import chat_model, chats, embedding_model, embeds, is_known_chat
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel, ModelKind
from services.llm_gateway.core.overrides import ALIASES, Override
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.models.embeddings import embed_batch
from services.llm_gateway.models.errors import (
    embedding_not_found,
    model_not_found,
    no_provider,
    not_answering,
    not_for_chats,
    window_unknown,
)
from services.llm_gateway.providers import listings
from services.llm_gateway.providers.entries import ProviderEntry
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.tenant_cache import TenantProviderCache

# Any text does: what counts is how long its vector is.
_MEASURED = "length"


@dataclass(frozen=True, slots=True)
class Target:
    """A chat model, and the provider to call for it."""

    config: ProviderConfig
    model: ChatModel


@dataclass(frozen=True, slots=True)
class EmbeddingTarget:
    """An embedding model, and the provider to call for it."""

    config: ProviderConfig
    model: EmbeddingModel


class Catalogue:
    """The catalogue. `operators`: the operator's providers by name; a tenant's own comes before one of those."""

    def __init__(
        self, providers: ProviderRegistry, operators: Mapping[str, ProviderEntry], tenants: TenantProviderCache
    ) -> None:
        self._providers = providers
        self._operators = operators
        self._tenants = tenants

    async def callable_model(self, organization_id: UUID, handle: str) -> Target:
        """Returns the model for a turn. Raises ModelNotFound, CredentialsUnreadable."""
        one, name = await self._resolve(organization_id, handle)
        listed, override = one.listing.by_name.get(name), one.overrides.of(name)
        if listed is None and not is_known_chat(one.config, name, override):
            listed = await self._list_model(one, name, override)
        return Target(one.config, chat_model(one.config, listed or ListedModel(name), override))

    async def chat_model(self, organization_id: UUID, handle: str) -> ChatModel:
        """Returns the model as it may be offered. Raises ModelNotFound, CredentialsUnreadable, and ModelWindowUnknown
        where no window is known.
        """
        one, name = await self._resolve(organization_id, handle)
        override = one.overrides.of(name)
        listed = await self._list_model(one, name, override)
        model = chat_model(one.config, listed, override)
        if not chats(one.config, listed, override):
            raise not_for_chats(model)
        if model.context_window is None:
            raise window_unknown(one, model)
        return model

    async def chat_models(self, organization_id: UUID, names: Iterable[str] = ()) -> tuple[list[ChatModel], list[str]]:
        """Returns all models with a known window, by handle; and the names of providers that do not answer. Raises
        Unavailable.
        """
        found = await self._renew(organization_id, set(names))
        models = [model for one in found if one.problem is None for model in _chat_models(one)]
        unreachable = sorted(one.config.name for one in found if one.problem is not None or one.listing.failed)
        return sorted(models, key=lambda model: (model.provider_name, model.name)), unreachable

    async def embedding_models(self, organization_id: UUID) -> list[EmbeddingModel]:
        """Returns all embedding models whose length is known, by handle. Raises Unavailable."""
        found = await self._renew(organization_id, set())
        models = [model for one in found if one.problem is None for model in _embedding_models(one)]
        return sorted(models, key=lambda model: (model.provider_name, model.name))

    async def embedding_model(self, organization_id: UUID, handle: str) -> EmbeddingTarget:
        """Returns one embedding model; where its vectors' length is unknown, it is measured. Raises EmbeddingNotFound,
        CredentialsUnreadable, and what the endpoint answers.
        """
        try:
            one, name = await self._resolve(organization_id, handle)
        except ModelNotFound as error:
            raise EmbeddingNotFound(error.message, handle=handle) from None
        override = one.overrides.of(name)
        listed = await self._list_embedding(one, name, override)
        model = embedding_model(one.config, listed, override, one.listing.measured.get(name))
        if not model.dimensions:
            measured = await one.listing.measure(name, lambda: self._measure(one.config, model))
            model = embedding_model(one.config, listed, override, measured)
        return EmbeddingTarget(one.config, model)

    async def reranker(self, organization_id: UUID, handle: str) -> tuple[ProviderConfig, str]:
        """Returns a model's provider, and its name there. Raises ModelNotFound, CredentialsUnreadable."""
        one, name = await self._resolve(organization_id, handle)
        return one.config, name

    async def provider_of(self, organization_id: UUID, types: Sequence[str]) -> ProviderEntry | None:
        """Returns a provider of one of these types, the first of which goes before: the tenant's own, else the
        operator's. Raises CredentialsUnreadable, Unavailable.
        """
        for those in (await self._tenants.of(organization_id), self._operators):
            for name in types:
                # The one that is called as its type before those with names of their own.
                sources = sorted((one for one in those.values() if one.config.type == name), key=_by_name)
                if sources:
                    return sources[0].usable()
        return None

    async def _resolve(self, organization_id: UUID, handle: str) -> tuple[ProviderEntry, str]:
        provider, _, name = handle.partition("/")
        try:
            mine = await self._tenants.of(organization_id)
        except Unavailable:
            # A tenant's own is never called as one of the operator's is.
            if self._find({}, provider) is None:
                raise
            mine = {}
        one = self._find(mine, provider)
        if one is None and name:
            # It may have been made on another replica.
            mine = await self._tenants.read(organization_id)
            one = self._find(mine, provider)
        if one is None or not name:
            raise no_provider(handle, mine.keys() | self._operators.keys())
        return one.usable(), name

    def _find(self, mine: Mapping[str, ProviderEntry], provider: str) -> ProviderEntry | None:
        for name in (provider, ALIASES.get(provider, "")):
            if source := mine.get(name) or self._operators.get(name):
                return source
        return None

    async def _renew(self, organization_id: UUID, names: set[str]) -> list[ProviderEntry]:
        """Returns the tenant's providers, each asked for its models where that is due."""
        everything = {**self._operators, **await self._tenants.of(organization_id)}
        chosen = [one for name, one in everything.items() if not names or name in names]
        await asyncio.gather(*(one.listing.renew() for one in chosen if one.problem is None))
        return chosen

    async def _list_model(self, one: ProviderEntry, name: str, override: Override) -> ListedModel:
        """Returns the model as its endpoint lists it, or bare where it is known without. Raises ModelNotFound."""
        listing, is_known = one.listing, is_known_chat(one.config, name, override)
        # Whoever creates an agent with a well-known model is not kept waiting by an endpoint that hangs.
        await listing.renew(wait=not is_known or not (one.config.is_vendor or listing.failed))
        if listing.models is not None and name not in listing.models and not _declares(override):
            # It may be newer than what is remembered.
            await listing.renew(if_older_than=listings.RETRY_SECONDS)
            if name not in listing.by_name:
                raise model_not_found(one, name, (model.handle for model in _chat_models(one)))
        if name not in listing.by_name and not is_known:
            raise not_answering(one, name)
        return listing.by_name.get(name) or ListedModel(name)

    async def _list_embedding(self, one: ProviderEntry, name: str, override: Override) -> ListedModel:
        """Returns the same of an embedding model."""
        config, listing = one.config, one.listing
        row = known_embedding(config.type, name, override.base_model)
        if override.dimensions is None and row is None:
            await listing.renew()
            if name not in listing.by_name:
                await listing.renew(if_older_than=listings.RETRY_SECONDS)
        listed = listing.by_name.get(name) or ListedModel(name)
        if embeds(config, listed, override):
            return listed
        others = [model.handle for model in _embedding_models(one)]
        if name not in listing.by_name or listed.kind is not ModelKind.UNKNOWN:
            raise embedding_not_found(one, name, others)
        if known(config.type, name, override.base_model or listed.base_model) is not None:
            raise embedding_not_found(one, name, others)
        # Its endpoint lists it and says no more: whether it embeds is seen when a vector is asked for.
        return listed

    async def _measure(self, config: ProviderConfig, model: EmbeddingModel) -> int:
        provider = await self._providers.get(config)
        [vector] = (await embed_batch(provider, model, [_MEASURED])).vectors
        return len(vector)


def _by_name(one: ProviderEntry) -> tuple[bool, str]:
    return one.config.name != one.config.type, one.config.name


def _declares(override: Override) -> bool:
    """Returns whether an override alone makes a model be there."""
    return override.context_window is not None or bool(override.base_model)


def _chat_models(one: ProviderEntry) -> list[ChatModel]:
    listed = one.listing.by_name
    declared = {name for name, override in one.overrides.models.items() if _declares(override)}
    models = []
    for name in declared | listed.keys():
        item, override = listed.get(name) or ListedModel(name), one.overrides.of(name)
        if chats(one.config, item, override):
            models.append(chat_model(one.config, item, override))
    return [model for model in models if model.context_window is not None]


def _embedding_models(one: ProviderEntry) -> list[EmbeddingModel]:
    listed, measured = one.listing.by_name, one.listing.measured
    declared = {name for name, override in one.overrides.models.items() if override.dimensions is not None}
    # Where the endpoint never answered, the table says what it has.
    table = EMBEDDINGS.get(one.config.type, {}) if one.listing.models is None else {}
    models = []
    for name in declared | listed.keys() | table.keys():
        item, override = listed.get(name) or ListedModel(name), one.overrides.of(name)
        if name in measured or embeds(one.config, item, override):
            models.append(embedding_model(one.config, item, override, measured.get(name)))
    return [model for model in models if model.dimensions]
