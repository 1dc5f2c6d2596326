"""Providers whose SDK is not installed: they say which extra brings it, and the others serve."""

import sys
from uuid import UUID

import pytest

from services.llm_gateway.core.errors import LlmSdkMissing, ModelNotFound
from services.llm_gateway.core.provider_types import TYPES
from services.llm_gateway.providers.registry import construct
from tests.fakes.openai_server import OpenAIServer
from tests.unit.llm_gateway.builders import config
from tests.unit.llm_gateway.test_azure import catalogue

ORG = UUID(int=1)
SDKS = {"bedrock": "botocore", "google_vertex": "google.auth", "local": "huggingface_hub"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the extras."""
    own = "services.llm_gateway.vendors."
    for name in [name for name in sys.modules if name.startswith((f"{own}bedrock", f"{own}local", f"{own}vertex"))]:
        monkeypatch.delitem(sys.modules, name)
    for sdk in SDKS.values():
        for name in [name for name in sys.modules if name == sdk or name.startswith(f"{sdk}.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, sdk, None)


def test_every_type_with_an_extra_is_meant() -> None:
    assert {row.name for row in TYPES.values() if row.extra} == SDKS.keys()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("name", SDKS)
def test_the_error_names_the_extra(name: str) -> None:
    with pytest.raises(LlmSdkMissing, match=f"`make setup EXTRAS={TYPES[name].extra}`"):
        construct(config(name, "http://127.0.0.1:9"))


@pytest.mark.usefixtures("bare")
async def test_the_other_providers_serve() -> None:
    async with OpenAIServer().running() as fake:
        known, providers = catalogue(
            OPENAI_API_KEY="key",
            OPENAI_BASE_URL=fake.base_url,
            AWS_BEARER_TOKEN_BEDROCK="key",
            AWS_REGION="us-east-1",
            GOOGLE_CLOUD_PROJECT="mine",
        )
        listed, unreachable = await known.chat_models(ORG)
        assert {one.provider_name for one in listed} == {"openai"}
        assert unreachable == ["bedrock", "google_vertex"]
        with pytest.raises(ModelNotFound, match="`make setup EXTRAS=bedrock`"):
            await known.chat_model(ORG, "bedrock/amazon.unknown-v1:0")
        await providers.close()
