"""`gateway`: the service behind real gRPC on the module's migrated database, with both fake vendors configured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import MigratedUrl
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.integration.llm_gateway.harness import Gateway, gateway_service


@pytest.fixture(scope="module")
def gateway_url(migrated_url: MigratedUrl) -> str:
    """The module's database with the schema `llm_gateway`."""
    return migrated_url("llm_gateway")


@pytest.fixture
def openai_fake() -> Iterator[OpenAIServer]:
    """On a thread of its own, as another machine would be."""
    with OpenAIServer(models=("gpt-4o-mini", "gpt-4o", "mystery")).in_thread() as fake:
        yield fake


@pytest.fixture
def anthropic_fake() -> Iterator[AnthropicServer]:
    """On a thread of its own."""
    with AnthropicServer().in_thread() as fake:
        yield fake


@pytest.fixture
async def gateway(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer
) -> AsyncIterator[Gateway]:
    """See `harness.Gateway`."""
    urls = {"OPENAI_BASE_URL": openai_fake.base_url, "ANTHROPIC_BASE_URL": anthropic_fake.base_url}
    async with gateway_service(gateway_url, tmp_path, urls) as service:
        yield service
