"""The catalogue of models, and the wait for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.common.encryption import Sealer
from services.llm_gateway.core.chat import Embeddings
from services.llm_gateway.core.errors import LlmConnection, ModelNotFound, ModelWindowUnknown
from services.llm_gateway.core.known_models import known
from services.llm_gateway.core.models import EmbeddingModel, ListedModel, ModelKind, Price, ValueSource
from services.llm_gateway.core.overrides import OperatorOverrides, Override
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.provider_types import base_url
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers import listings as module
from services.llm_gateway.providers.credentials import Vault
from services.llm_gateway.providers.entries import Patience, ProviderEntryFactory
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.tenant_cache import TenantProviderCache
from tests.unit.llm_gateway.builders import config
from tests.unit.llm_gateway.provider_memory import ProviderMemory

ORG = UUID(int=1)


class Endpoint:
    """A provider that lists what it is told to; counts how often it was asked."""

    def __init__(self, *models: ListedModel) -> None:
        self.models: Sequence[ListedModel] = models
        self.hangs = self.fails = False
        self.asked = self.answered = self.embedded = 0

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        self.asked += 1
        try:
            if self.hangs:
                await asyncio.sleep(60)
            if self.fails:
                raise LlmConnection("away")
            return self.models
        finally:
            self.answered += 1

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        self.embedded += 1
        return Embeddings([[0.5] * 7 for _ in texts])


class Fixed(ProviderRegistry):
    """Providers that are these endpoints."""

    def __init__(self, endpoint: Any) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def get(self, config: ProviderConfig) -> Any:
        return self._endpoint


def catalogue(
    endpoint: Endpoint, *, is_vendor: bool = False, name: str = "openai", seconds: float = 0.1, **overrides: Override
) -> Catalogue:
    """One provider of the operator's, which gets so many seconds to list its models; `overrides` by their names."""
    configs = [replace(config("openai", "http://host/v1", is_vendor=is_vendor), name=name)]
    providers, store = Fixed(endpoint), ProviderMemory()
    vault = Vault(Sealer([bytes(32)]))
    maker = ProviderEntryFactory(providers, store, vault, patience=Patience(listing=seconds), allow_private=True)
    said = OperatorOverrides({f"{name}/{model}": one for model, one in overrides.items()})
    return Catalogue(providers, maker.operators(configs, said), TenantProviderCache(store, maker, providers))


def window(tokens: int) -> Override:
    return Override(context_window=tokens)


async def test_a_window_comes_from_override_endpoint_or_table_and_says_which() -> None:
    endpoint = Endpoint(ListedModel("gpt-4o-mini"), ListedModel("llama", 8_192), ListedModel("mystery"))
    models = catalogue(endpoint, mine=window(4_096), llama=window(2_048))
    listed, unreachable = await models.chat_models(ORG)
    assert [(model.handle, model.context_window, model.context_window_source) for model in listed] == [
        ("openai/gpt-4o-mini", 128_000, ValueSource.TABLE),
        ("openai/llama", 2_048, ValueSource.OVERRIDE),
        ("openai/mine", 4_096, ValueSource.OVERRIDE),
    ]
    assert unreachable == []
    assert (await catalogue(endpoint).chat_model(ORG, "openai/llama")).context_window_source is ValueSource.ENDPOINT
    with pytest.raises(ModelWindowUnknown, match=r"LOCI_MODEL_WINDOWS='\{\"openai/mystery\": 32768\}'"):
        await models.chat_model(ORG, "openai/mystery")
    # A turn does not need the window.
    assert (await models.callable_model(ORG, "openai/mystery")).model.context_window is None


async def test_unknown_handles_name_what_there_is() -> None:
    models = catalogue(Endpoint(ListedModel("gpt-4o-mini"), ListedModel("gpt-4o")))
    with pytest.raises(ModelNotFound, match=r"no model 'openai/gpt-9'; there are: openai/gpt-4o, openai/gpt-4o-mini"):
        await models.chat_model(ORG, "openai/gpt-9")
    with pytest.raises(ModelNotFound, match="configured providers are openai"):
        await models.chat_model(ORG, "anthropic/claude-haiku-4-5")
    with pytest.raises(ModelNotFound, match="A handle is provider/model"):
        await models.callable_model(ORG, "gpt-4o")
    with pytest.raises(ModelNotFound, match="no embedding model 'openai/x'"):
        await models.embedding_model(ORG, "openai/x")


async def test_an_endpoint_is_asked_once_and_again_for_what_may_be_new() -> None:
    endpoint = Endpoint(ListedModel("gpt-4o"))
    models = catalogue(endpoint)
    await asyncio.gather(*(models.chat_model(ORG, "openai/gpt-4o") for _ in range(5)))
    assert endpoint.asked == 1
    endpoint.models = [ListedModel("gpt-4o"), ListedModel("new", 4_096)]
    with pytest.raises(ModelNotFound):
        await models.chat_model(ORG, "openai/new")
    assert endpoint.asked == 1


async def test_new_models_are_found_and_old_answers_serve_while_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    endpoint = Endpoint(ListedModel("gpt-4o"))
    models = catalogue(endpoint)
    await models.chat_model(ORG, "openai/gpt-4o")
    endpoint.models = [ListedModel("gpt-4o"), ListedModel("new", 4_096)]
    assert (await models.chat_model(ORG, "openai/new")).context_window == 4_096
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    endpoint.hangs = True
    assert await models.chat_model(ORG, "openai/gpt-4o")
    await asyncio.sleep(0)  # for the task that asks
    assert (endpoint.asked, endpoint.answered) == (3, 2)


async def test_nobody_waits_for_an_endpoint_that_hangs() -> None:
    endpoint = Endpoint()
    endpoint.hangs = True
    vendors = catalogue(endpoint, is_vendor=True, seconds=60)
    assert (await vendors.chat_model(ORG, "openai/gpt-4o")).context_window == 128_000
    await asyncio.sleep(0)
    assert (endpoint.asked, endpoint.answered) == (1, 0)
    models = catalogue(endpoint)
    for _ in range(20):
        assert (await models.chat_model(ORG, "openai/gpt-4o")).context_window_source is ValueSource.TABLE
    with pytest.raises(ModelNotFound, match="does not list its models now"):
        await models.chat_model(ORG, "openai/unheard-of")
    assert await models.chat_models(ORG) == ([], ["openai"])
    # The first call alone waited for it, for as long as it may take.
    assert (endpoint.asked, endpoint.answered) == (2, 1)


async def test_an_endpoint_that_fails_is_named_and_overrides_still_hold() -> None:
    endpoint = Endpoint()
    endpoint.fails = True
    models = catalogue(endpoint, mine=window(9_000))
    listed, unreachable = await models.chat_models(ORG, ["openai"])
    assert [model.handle for model in listed] == ["openai/mine"]
    assert unreachable == ["openai"]
    assert (await models.chat_model(ORG, "openai/mine")).context_window == 9_000
    assert await models.chat_models(ORG, ["other"]) == ([], [])


async def test_embeddings() -> None:
    models = catalogue(Endpoint(ListedModel("text-embedding-3-small"), ListedModel("gpt-4o")))
    assert [model.handle for model in await models.embedding_models(ORG)] == ["openai/text-embedding-3-small"]
    assert (await models.embedding_model(ORG, "openai/text-embedding-3-small")).model.dimensions == 1536


async def test_embedding_models_are_what_endpoint_table_or_override_name() -> None:
    endpoint = Endpoint(
        ListedModel("said", dimensions=12),
        ListedModel("kind", kind=ModelKind.EMBEDDING),
        ListedModel("unknown"),
        ListedModel("chat", 8_192, kind=ModelKind.CHAT),
    )
    models = catalogue(endpoint, name="mine", declared=Override(dimensions=5, batch_size=3))
    listed = {model.name: (model.dimensions, model.batch_size) for model in await models.embedding_models(ORG)}
    assert listed == {"said": (12, 64), "declared": (5, 3)}
    # What nobody says is measured, once.
    for name in ("kind", "unknown", "kind"):
        found = (await models.embedding_model(ORG, f"mine/{name}")).model
        assert (found.dimensions, found.dimensions_source) == (7, ValueSource.ENDPOINT)
    assert endpoint.embedded == 2
    assert [model.name for model in await models.embedding_models(ORG)] == ["declared", "kind", "said", "unknown"]
    for name in ("chat", "nowhere"):
        with pytest.raises(ModelNotFound, match=r"no embedding model.*LOCI_MODELS="):
            await models.embedding_model(ORG, f"mine/{name}")


async def test_models_of_other_kinds_are_no_chat_models() -> None:
    kinds = (ListedModel("whisper", 1, kind=ModelKind.OTHER), ListedModel("embeds", 1, kind=ModelKind.EMBEDDING))
    models = catalogue(Endpoint(*kinds), name="mine")
    assert await models.chat_models(ORG) == ([], [])
    with pytest.raises(ModelNotFound, match="mine/whisper is not a chat model"):
        await models.chat_model(ORG, "mine/whisper")


async def test_the_references_name_of_openai_is_taken_and_never_shown() -> None:
    models = catalogue(Endpoint(ListedModel("gpt-4o"), ListedModel("text-embedding-3-small")))
    assert (await models.chat_model(ORG, "openai-proxy/gpt-4o")).handle == "openai/gpt-4o"
    assert (await models.callable_model(ORG, "openai-proxy/gpt-4o")).model.handle == "openai/gpt-4o"
    embedding = await models.embedding_model(ORG, "openai-proxy/text-embedding-3-small")
    assert embedding.model.handle == "openai/text-embedding-3-small"
    listed, _ = await models.chat_models(ORG)
    assert [model.handle for model in listed] == ["openai/gpt-4o"]


async def test_a_deployment_is_known_by_its_base_model_and_priced_by_what_is_said() -> None:
    price = Price(5, 6)
    endpoint = Endpoint(
        ListedModel("dep", base_model="gpt-4o-mini", price=price),
        ListedModel("other", 9_000, 100_000, capabilities={"tools": False}),
    )
    models = catalogue(endpoint, mine=Override(base_model="o3"))
    deployed = await models.chat_model(ORG, "openai/dep")
    assert (deployed.context_window, deployed.context_window_source) == (128_000, ValueSource.TABLE)
    assert deployed.price == replace(price, source=ValueSource.ENDPOINT)
    assert deployed.capabilities_source is ValueSource.TABLE
    other = await models.chat_model(ORG, "openai/other")
    assert (other.max_output_tokens, other.max_output_tokens_source) == (9_000, ValueSource.ENDPOINT)
    assert (other.capabilities.tools, other.capabilities.vision) == (False, True)
    assert other.capabilities_source is ValueSource.ENDPOINT
    assert (await models.chat_model(ORG, "openai/mine")).context_window == 200_000


@pytest.mark.parametrize(
    ("provider", "name", "window"),
    [
        ("openai", "gpt-4o-mini-2024-07-18", 128_000),
        ("openai", "gpt-4.1-mini", 1_047_576),
        ("openai", "gpt-5-mini", 400_000),
        ("openai", "gpt-5.4-mini-2026-03-17", 400_000),
        ("openai", "gpt-6.2-sol", 1_050_000),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme::x", 128_000),
        ("openai", "o3-mini", 200_000),
        ("openai", "gpt-4o-audio-preview", None),
        ("openai", "text-embedding-3-small", None),
        ("openai", "gpt-5-pro", None),
        ("openai", "gpt-40", None),
        ("openai", "o1-mini", None),
        ("anthropic", "claude-haiku-4-5-20251001", 200_000),
        ("anthropic", "claude-opus-4-20250514", 200_000),
        ("anthropic", "claude-opus-4-8", 1_000_000),
        ("anthropic", "claude-sonnet-5-5", 1_000_000),
        ("loci", "demo", None),
        ("openrouter", "anthropic/claude-sonnet-4.5", 200_000),
        ("together", "openai/gpt-4.1-mini", 1_047_576),
        ("openrouter", "openai/gpt-4o-audio-preview", None),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000),
        ("azure", "gpt-4o", 128_000),
        ("together", "nobody/gpt-4o", None),
    ],
)
def test_the_table(provider: str, name: str, window: int | None) -> None:
    row = known(provider, name)
    assert (row.context_window if row else None) == window


@pytest.mark.parametrize(
    ("provider", "given", "made"),
    [
        ("openai", "", "https://api.openai.com/v1"),
        ("openai", "http://host:8000", "http://host:8000/v1"),
        ("openai", "http://host:8000/", "http://host:8000/v1"),
        ("openai", "http://host:8000/v1/", "http://host:8000/v1"),
        ("openai", "http://host/openai/v2", "http://host/openai/v2"),
        ("anthropic", "", "https://api.anthropic.com"),
        ("anthropic", "http://host:1/v1", "http://host:1"),
        ("anthropic", "http://host:1/v1/", "http://host:1"),
        ("anthropic", "http://host:1/proxy", "http://host:1/proxy"),
    ],
)
def test_base_urls_with_and_without_the_version(provider: str, given: str, made: str) -> None:
    assert base_url(provider, given) == made
