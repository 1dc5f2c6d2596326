"""The operator's environment, which vendors' SDKs read, goes to the vendor alone."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from services.llm_gateway.vendors.anthropic.client import AnthropicProvider
from services.llm_gateway.vendors.azure.client import AzureProvider
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.unit.llm_gateway.builders import config

_SECRETS = {
    "OPENAI_ORG_ID": "org-operators",
    "OPENAI_PROJECT_ID": "proj-operators",
    "OPENAI_API_KEY": "sk-operators",
    "OPENAI_ADMIN_KEY": "sk-admin-operators",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway: operators\nX-API-Key: operators\nAuthorization: Bearer operators",
    "AZURE_OPENAI_AD_TOKEN": "operators",
    "AZURE_OPENAI_API_KEY": "operators",
    "ANTHROPIC_API_KEY": "operators",
    "ANTHROPIC_AUTH_TOKEN": "operators",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway: operators\nX-API-Key: operators\nAuthorization: Bearer operators",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's."""
    for name, value in _SECRETS.items():
        monkeypatch.setenv(name, value)


async def _headers(provider: Any) -> Mapping[str, str]:
    routes = getattr(provider, "_routes", None) or provider._transport._routes
    found: Mapping[str, str] = (await routes.find("POST", "/x", b"")).headers
    return found


@pytest.mark.parametrize("make", [OpenAIProvider, AzureProvider, AnthropicProvider])
@pytest.mark.parametrize("whose", [UUID(int=1), None])
async def test_a_stranger_hears_nothing_of_the_operator(make: Any, whose: UUID | None) -> None:
    kind = {OpenAIProvider: "openai", AzureProvider: "azure", AnthropicProvider: "anthropic"}[make]
    made = make(config(kind, "https://llm.example.com/v1", organization_id=whose, api_key="sk-own"))
    headers = await _headers(made)
    assert not [value for value in headers.values() if "operators" in value]
    assert "sk-own" in " ".join(headers.values())


async def test_a_tenants_key_at_the_vendor_is_not_the_operators_organization() -> None:
    made = OpenAIProvider(config("openai", "https://api.openai.com/v1", organization_id=UUID(int=1), is_vendor=True))
    assert "openai-organization" not in await _headers(made)


async def test_the_operator_is_known_at_the_vendor() -> None:
    made = OpenAIProvider(config("openai", "https://api.openai.com/v1", is_vendor=True))
    assert (await _headers(made))["openai-organization"] == "org-operators"
