"""Azure OpenAI: addresses, lists of deployments, what a content filter says; against the fake resource."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.common.encryption import Sealer
from services.common.settings import Env
from services.llm_gateway.core.chat import Completed, FinishReason
from services.llm_gateway.core.errors import LlmAuthentication, LlmBadRequest, ModelNotFound
from services.llm_gateway.core.models import ListedModel, ModelKind
from services.llm_gateway.core.overrides import OperatorOverrides
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers.credentials import Vault
from services.llm_gateway.providers.entries import Patience, ProviderEntryFactory
from services.llm_gateway.providers.environment import read_providers
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.tenant_cache import TenantProviderCache
from services.llm_gateway.vendors.azure.addresses import DEFAULT_VERSION, Addresses
from services.llm_gateway.vendors.azure.client import AzureProvider
from services.llm_gateway.vendors.azure.replies import models, read_refusal, vendors_name
from tests.fakes.azure_server import AzureServer
from tests.fakes.script import Reply, Rule
from tests.unit.llm_gateway.builders import config, model, request, user
from tests.unit.llm_gateway.provider_memory import ProviderMemory

ORG = UUID(int=1)
RESOURCE = "https://r.openai.azure.com"
MINI = replace(model("azure/my-mini"), base_model="gpt-4o-mini")


@pytest.fixture
async def fake() -> AsyncIterator[AzureServer]:
    async with AzureServer().running() as server:
        yield server


@pytest.mark.parametrize(
    ("path", "version", "made"),
    [
        ("", "", Addresses(RESOURCE)),
        ("/", "", Addresses(RESOURCE)),
        ("/openai", "", Addresses(RESOURCE)),
        ("/openai/v1/", "", Addresses(RESOURCE)),
        ("/openai/v1", "2024-10-21", Addresses(RESOURCE)),
        ("", "v1", Addresses(RESOURCE)),
        ("", "preview", Addresses(RESOURCE)),
        ("", "2024-10-21", Addresses(RESOURCE, "2024-10-21")),
        ("/openai/deployments/mine", "", Addresses(RESOURCE, DEFAULT_VERSION, "mine")),
        (
            "/openai/deployments/mine/chat/completions?api-version=2025-01-01-preview",
            "",
            Addresses(RESOURCE, "2025-01-01-preview", "mine"),
        ),
        (
            "/openai/deployments/mine?api-version=2025-01-01-preview",
            "2024-10-21",
            Addresses(RESOURCE, "2024-10-21", "mine"),
        ),
        ("/behind/a/proxy/openai/v1", "", Addresses(f"{RESOURCE}/behind/a/proxy")),
    ],
)
def test_addresses(path: str, version: str, made: Addresses) -> None:
    assert Addresses.of(f"{RESOURCE}{path}", version) == made


def test_paths() -> None:
    v1, dated = Addresses(RESOURCE), Addresses(RESOURCE, "2024-10-21")
    assert (v1.base_url, v1.path("/embeddings", "mine")) == (f"{RESOURCE}/openai/v1", "/embeddings")
    assert dated.base_url == f"{RESOURCE}/openai"
    assert dated.path("/embeddings", "a/b") == "/deployments/a%2Fb/embeddings?api-version=2024-10-21"
    assert dated.path("/responses") == "/responses?api-version=2024-10-21"
    assert (v1.has_responses, dated.has_responses) == (True, False)
    assert Addresses(RESOURCE, DEFAULT_VERSION).has_responses


def catalogue(**settings: str) -> tuple[Catalogue, ProviderRegistry]:
    """The models of the operator's providers with these settings."""
    configs = [one for one in read_providers(Env(settings)) if one.name != "loci"]
    providers, store = ProviderRegistry(), ProviderMemory()
    maker = ProviderEntryFactory(
        providers, store, Vault(Sealer([bytes(32)])), patience=Patience(listing=5.0), allow_private=True
    )
    operators = maker.operators(configs, OperatorOverrides({}))
    return Catalogue(providers, operators, TenantProviderCache(store, maker, providers)), providers


async def test_key_and_base_url_alone_fill_the_model_list(fake: AzureServer) -> None:
    known, providers = catalogue(AZURE_API_KEY="key", AZURE_BASE_URL=fake.base_url)
    listed, unreachable = await known.chat_models(ORG)
    assert unreachable == []
    assert [(one.handle, one.base_model, one.context_window) for one in listed] == [
        ("azure/my-five", "gpt-5", 400_000),
        ("azure/my-mini", "gpt-4o-mini", 128_000),
        ("azure/old", "gpt-3.5-turbo", 16_385),
    ]
    [embedder] = await known.embedding_models(ORG)
    assert (embedder.handle, embedder.dimensions) == ("azure/text-embedding-3-small", 1_536)
    await providers.close()


async def test_where_deployments_are_not_listed_the_v1_endpoint_says_the_models(fake: AzureServer) -> None:
    fake.lists_deployments = False
    known, providers = catalogue(AZURE_API_KEY="key", AZURE_BASE_URL=f"{fake.base_url}/openai/v1/")
    listed, _ = await known.chat_models(ORG)
    assert [(one.handle, one.context_window) for one in listed] == [
        ("azure/gpt-4o-mini", 128_000),
        ("azure/gpt-5", 400_000),
    ]
    await providers.close()


@pytest.mark.parametrize(("lists", "base_model"), [(True, "gpt-4o-mini"), (False, "")])
async def test_a_base_url_with_a_deployment_has_that_one(fake: AzureServer, lists: bool, base_model: str) -> None:
    fake.lists_deployments = lists
    provider = AzureProvider(config("azure", f"{fake.base_url}/openai/deployments/my-mini"))
    assert await provider.list_models(5.0) == [ListedModel("my-mini", base_model=base_model)]
    fake.reply(Reply(text="Hi."))
    [_] = [event async for event in provider.generate(request(user("hi")), MINI, stream=False)]
    assert fake.requests[-1].path == "/openai/deployments/my-mini/chat/completions"
    await provider.close()


async def test_a_wrong_key_is_said_at_once(fake: AzureServer) -> None:
    fake.rules(Rule(Reply(error="authentication"), route="models"))
    provider = AzureProvider(config("azure", fake.base_url))
    with pytest.raises(LlmAuthentication, match="AZURE_API_KEY"):
        await provider.list_models(5.0)
    assert len(fake.requests) == 1
    await provider.close()


async def test_an_old_version_is_called_by_chat_completions(fake: AzureServer) -> None:
    provider = AzureProvider(config("azure", fake.base_url, api_version="2024-10-21"))
    five = replace(model("openai/gpt-5"), name="my-five", base_model="gpt-5", provider_type="azure")
    [done] = [event async for event in provider.generate(request(user("hi")), five, stream=False)]
    assert isinstance(done, Completed)
    sent = fake.requests[-1]
    assert (sent.path, sent.headers["api-key"]) == ("/openai/deployments/my-five/chat/completions", "sk-test")
    assert "authorization" not in sent.headers
    await provider.close()


async def test_an_unknown_deployment(fake: AzureServer) -> None:
    provider = AzureProvider(config("azure", fake.base_url))
    with pytest.raises(ModelNotFound, match="API deployment for this resource does not exist"):
        _ = [event async for event in provider.generate(request(user("hi")), model("azure/nope"), stream=True)]
    await provider.close()


FILTERED = {
    "error": {
        "message": "The response was filtered.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {
                "hate": {"filtered": True, "severity": "high"},
                "jailbreak": {"filtered": True, "detected": True},
                "violence": {"filtered": False, "severity": "safe"},
            },
        },
    }
}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_that_is_filtered_says_for_what(fake: AzureServer, stream: bool) -> None:
    raw = orjson.dumps(FILTERED).decode()
    fake.reply(Reply(raw_body=raw, status=400, content_type="application/json"))
    provider = AzureProvider(config("azure", fake.base_url))
    with pytest.raises(LlmBadRequest, match=r"filtered\. \(found: hate high, jailbreak\)"):
        _ = [event async for event in provider.generate(request(user("hi")), MINI, stream=stream)]
    await provider.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_is_filtered(fake: AzureServer, stream: bool) -> None:
    fake.reply(Reply(text="one two", finish="content_filter"))
    provider = AzureProvider(config("azure", fake.base_url))
    *_, done = [event async for event in provider.generate(request(user("hi")), MINI, stream=stream)]
    assert isinstance(done, Completed)
    assert done.generation.finish_reason is FinishReason.CONTENT_FILTER
    await provider.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"code": "429", "message": "Slow down."}}, "Slow down."),
        ({"statusCode": 401, "message": "Access denied."}, "Access denied."),
        ("upstream connect error", "upstream connect error"),
        (
            {
                "error": {
                    "message": "No.",
                    "content_filters": [{"content_filter_results": {"hate": {"filtered": True}}}],
                }
            },
            "No. (found: hate)",
        ),
    ],
)
def test_shapes_of_errors(body: Any, message: str) -> None:
    assert read_refusal(400, body).message == message


def test_models_of_v1() -> None:
    listed = models(
        [
            {"id": "gpt-35-turbo-1106", "capabilities": {"inference": True, "chat_completion": True}},
            {"id": "ada", "capabilities": {"inference": True, "embeddings": True}},
            {"id": "sora", "capabilities": {"inference": True}},
            {"id": "tune-me", "capabilities": {"inference": False}},
            {"id": "plain"},
        ]
    )
    assert [(one.name, one.kind) for one in listed] == [
        ("gpt-35-turbo-1106", ModelKind.CHAT),
        ("ada", ModelKind.EMBEDDING),
        ("sora", ModelKind.OTHER),
        ("plain", ModelKind.UNKNOWN),
    ]
    assert listed[0].base_model == "gpt-3.5-turbo-1106"
    assert vendors_name("gpt-4o") == "gpt-4o"
