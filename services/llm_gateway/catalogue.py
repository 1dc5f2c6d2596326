"""Which models there are: what the endpoints list, completed by the table and the operator's overrides.

An endpoint is asked when somebody wants to know, for a short time, and its answer is kept: for FRESH_SECONDS
it is used as it is, after that it is used while a new one is fetched. An endpoint that failed is not asked
again for RETRY_SECONDS, so that whoever creates agents never waits for it in a row.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from services.llm_gateway.errors import LlmError, ModelNotFound, ModelWindowUnknown
from services.llm_gateway.known_models import EMBEDDINGS, UNLISTED, known
from services.llm_gateway.provider import ChatModel, EmbeddingModel, ListedModel, ValueSource
from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.registry import Providers

FRESH_SECONDS = 300.0
RETRY_SECONDS = 10.0
WINDOWS_SETTING = "LOCI_MODEL_WINDOWS"
_NAMED_IN_ERROR = 30


@dataclass
class _Listing:
    """The last answer of one endpoint; `models` None: it never answered."""

    models: Mapping[str, ListedModel] | None = None
    asked_at: float = field(default=-1e9)
    failed: bool = False
    refresh: asyncio.Task[None] | None = None

    def is_due(self, now: float) -> bool:
        return now - self.asked_at > (RETRY_SECONDS if self.failed else FRESH_SECONDS)


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
    """`windows`: handle -> tokens, the operator's overrides. `timeout`: seconds an endpoint gets to list
    models.
    """

    def __init__(
        self,
        providers: Providers,
        configs: Iterable[ProviderConfig],
        windows: Mapping[str, int],
        *,
        timeout: float = 2.0,
    ) -> None:
        self._providers = providers
        self._configs = {config.name: config for config in configs}
        self._windows = windows
        self._timeout = timeout
        self._listings = {name: _Listing() for name in self._configs}

    async def callable_model(self, organization_id: UUID, handle: str) -> "Target":
        """The model for a turn: from memory and the table alone where they know it, so that no turn waits."""
        config, name = self._split(handle)
        listed = (self._listings[config.name].models or {}).get(name)
        if listed is None and not self._is_known(config, name):
            return Target(config, await self._found(config, name))
        return Target(config, self._describe(config, listed or ListedModel(name)))

    async def chat_model(self, organization_id: UUID, handle: str) -> ChatModel:
        """The model as it may be offered. Raises ModelNotFound, and ModelWindowUnknown where no window is
        known.
        """
        config, name = self._split(handle)
        model = await self._found(config, name)
        if model.context_window is None:
            raise _window_unknown(model)
        return model

    async def chat_models(self, organization_id: UUID, names: Iterable[str] = ()) -> tuple[list[ChatModel], list[str]]:
        """All models with a known window, by handle; and the names of providers that do not answer."""
        chosen = set(names) or self._listings.keys()
        configs = [config for name, config in self._configs.items() if name in chosen]
        await asyncio.gather(*(self._refresh(config) for config in configs))
        models = [model for config in configs for model in self._offered(config)]
        unreachable = sorted(config.name for config in configs if self._listings[config.name].failed)
        return sorted(models, key=lambda model: (model.provider_name, model.name)), unreachable

    async def embedding_models(self, organization_id: UUID) -> list[EmbeddingModel]:
        """All embedding models, by handle."""
        await asyncio.gather(*(self._refresh(config) for config in self._configs.values()))
        models = [model for config in self._configs.values() for model in self._embeddings(config)]
        return sorted(models, key=lambda model: (model.provider_name, model.name))

    async def embedding_model(self, organization_id: UUID, handle: str) -> "EmbeddingTarget":
        """One embedding model. Raises ModelNotFound."""
        config, name = self._split(handle)
        if name not in EMBEDDINGS.get(config.type, {}):
            handles = [model.handle for model in await self.embedding_models(organization_id)]
            raise _not_found(handle, "embedding model", handles)
        return EmbeddingTarget(config, _embedding(config, name))

    def _split(self, handle: str) -> tuple[ProviderConfig, str]:
        provider, _, name = handle.partition("/")
        config = self._configs.get(provider)
        if config is None or not name:
            known_names = ", ".join(sorted(self._configs))
            raise ModelNotFound(
                f"There is no model {handle!r}: configured providers are {known_names}. "
                "A handle is provider/model, for example loci/demo; OPENAI_API_KEY or ANTHROPIC_API_KEY in the "
                "environment of the server adds that provider.",
                handle=handle,
            )
        return config, name

    def _is_known(self, config: ProviderConfig, name: str) -> bool:
        return known(config.type, name) is not None or f"{config.name}/{name}" in self._windows

    async def _found(self, config: ProviderConfig, name: str) -> ChatModel:
        handle, listing = f"{config.name}/{name}", self._listings[config.name]
        # Whoever creates an agent with a well-known model is not kept waiting by an endpoint that hangs.
        in_table = self._is_known(config, name)
        await self._refresh(config, wait=not in_table or not (config.is_vendor or listing.failed))
        listed = (listing.models or {}).get(name)
        if listed is None and listing.models is not None and handle not in self._windows:
            # It may be newer than what is remembered.
            await self._refresh(config, if_older_than=RETRY_SECONDS)
            listed = (listing.models or {}).get(name)
            if listed is None:
                raise _not_found(handle, "model", [model.handle for model in self._offered(config)])
        if listed is None and not in_table:
            raise ModelNotFound(
                f"{config.name} does not list its models now ({config.base_url}), and {handle!r} is not in the "
                f"table of known models. If it is served there, say so: {_override(handle)}",
                provider=config.name,
                handle=handle,
            )
        return self._describe(config, listed or ListedModel(name))

    async def _refresh(self, config: ProviderConfig, *, wait: bool = True, if_older_than: float | None = None) -> None:
        """Ask the endpoint where that is due; with `wait`, wait where there is no earlier answer to use."""
        listing, now = self._listings[config.name], time.monotonic()
        forced = if_older_than is not None and now - listing.asked_at > if_older_than
        if listing.refresh is None and (forced or listing.is_due(now)):
            listing.refresh = asyncio.create_task(self._ask(config, listing))
        if listing.refresh is not None and wait and (forced or listing.models is None):
            await asyncio.shield(listing.refresh)

    async def _ask(self, config: ProviderConfig, listing: _Listing) -> None:
        try:
            provider = await self._providers.get(config)
            async with asyncio.timeout(self._timeout):
                models = await provider.list_models(self._timeout)
            listing.models, listing.failed = {model.name: model for model in models}, False
        except (LlmError, TimeoutError):
            listing.failed = True
        finally:
            listing.asked_at, listing.refresh = time.monotonic(), None

    def _offered(self, config: ProviderConfig) -> list[ChatModel]:
        prefix = f"{config.name}/"
        names = {handle.removeprefix(prefix) for handle in self._windows if handle.startswith(prefix)}
        listed = self._listings[config.name].models or {}
        models = (self._describe(config, listed.get(name) or ListedModel(name)) for name in names | listed.keys())
        return [model for model in models if model.context_window is not None]

    def _describe(self, config: ProviderConfig, listed: ListedModel) -> ChatModel:
        row = known(config.type, listed.name)
        window, source = self._windows.get(f"{config.name}/{listed.name}"), ValueSource.OVERRIDE
        if window is None:
            window, source = listed.context_window, ValueSource.ENDPOINT
        if window is None and row is not None:
            window, source = row.context_window, ValueSource.TABLE
        return ChatModel(
            provider_name=config.name,
            provider_type=config.type,
            name=listed.name,
            endpoint=config.base_url,
            context_window=window,
            context_window_source=None if window is None else source,
            max_output_tokens=listed.max_output_tokens or (row.max_output_tokens if row else None),
            capabilities=row.capabilities if row else UNLISTED,
            display_name=listed.display_name or listed.name,
        )

    def _embeddings(self, config: ProviderConfig) -> Sequence[EmbeddingModel]:
        table, listing = EMBEDDINGS.get(config.type, {}), self._listings[config.name].models
        names = table.keys() if listing is None else table.keys() & listing.keys()
        return [_embedding(config, name) for name in names]


def _embedding(config: ProviderConfig, name: str) -> EmbeddingModel:
    row = EMBEDDINGS[config.type][name]
    return EmbeddingModel(config.name, config.type, name, config.base_url, row.dimensions, row.batch_size, name)


def _override(handle: str) -> str:
    return f"{WINDOWS_SETTING}='{{\"{handle}\": 32768}}' (its context window in tokens)."


def _window_unknown(model: ChatModel) -> ModelWindowUnknown:
    return ModelWindowUnknown(
        f"The context window of {model.handle} is unknown: neither its endpoint nor the table says it. "
        f"Set it in the environment of the server: {_override(model.handle)}",
        provider=model.provider_name,
        handle=model.handle,
    )


def _not_found(handle: str, what: str, handles: Sequence[str]) -> ModelNotFound:
    shown = ", ".join(sorted(handles)[:_NAMED_IN_ERROR]) or "none"
    more = f" and {len(handles) - _NAMED_IN_ERROR} more" if len(handles) > _NAMED_IN_ERROR else ""
    return ModelNotFound(f"There is no {what} {handle!r}; there are: {shown}{more}.", handle=handle)
