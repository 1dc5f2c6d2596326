"""The rules of a provider's configuration."""

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core.errors import ProviderInvalid
from services.llm_gateway.providers.model import ProviderSettings
from services.llm_gateway.providers.validation import validate

ACCOUNT = {"type": "service_account", "client_email": "a@b", "private_key": "k", "project_id": "p"}


def draft(provider_type: str = "openai", **fields: Any) -> ProviderSettings:
    return ProviderSettings(**{"name": "mine", "provider_type": provider_type, "api_key": "sk-1", **fields})


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (draft(), "https://api.openai.com/v1"),
        (draft(base_url="https://llm.example.com/"), "https://llm.example.com/v1"),
        (draft(base_url="http://8.8.8.8:8000/v1"), "http://8.8.8.8:8000/v1"),
        (draft(base_url="https://llm.example.com", api_key=""), "https://llm.example.com/v1"),
        (draft("ollama", base_url="https://ollama.example.com/v1", api_key=""), "https://ollama.example.com"),
        (draft("azure", base_url="https://a.openai.azure.com"), "https://a.openai.azure.com"),
        (draft("bedrock", access_key="AKIA", region="eu-central-1"), ""),
        (draft("google_vertex", api_key=orjson.dumps(ACCOUNT).decode(), options={"project": "p"}), ""),
        (draft("cerebras", options={"tier": "free", "max_concurrency": 4}), "https://api.cerebras.ai/v1"),
        (draft(options={"models": {"a": {"context_window": 5}}}), "https://api.openai.com/v1"),
    ],
)
def test_what_is_taken(given: ProviderSettings, url: str) -> None:
    assert validate(given, allow_private=False) == replace(given, base_url=url)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (draft(name=""), "name: '' is not 1 to 64 letters"),
        (draft(name="a/b"), "name: 'a/b' is not"),
        (draft(name="a" * 65), "is not 1 to 64 letters"),
        (draft("opena"), "provider_type: 'opena' is none of anthropic, azure"),
        (draft("letta"), "provider_type: letta is the hosted service of another vendor"),
        (draft("chatgpt_oauth"), "use openai with an API key"),
        (draft("loci"), "loci is there without being made"),
        (
            draft("local", api_key="", options={"embedding": "/etc"}),
            "uses the server's own files; only its operator",
        ),
        (draft(api_key=""), "api_key: providers of type openai need one"),
        (draft(api_key="sk 1"), "api_key: a key is printable ASCII"),
        (draft(api_key="sk\r\nx-evil: 1"), "api_key: a key is printable ASCII"),
        (draft(api_key="skä"), "api_key: a key is printable ASCII"),
        (draft(access_key="x"), "access_key: providers of type openai have none"),
        (draft(base_url="ftp://host"), "base_url: 'ftp://host' is no http or https address"),
        (draft(base_url="llm.example.com"), "is no http or https address"),
        (draft(base_url="https://"), "is no http or https address"),
        (draft(base_url="https://host:port"), "is no http or https address"),
        (draft(base_url="https://[::1"), "is no http or https address"),
        (draft(base_url="https://ho st"), "is no http or https address"),
        (draft(base_url="https://me:pw@host"), "must not hold a user"),
        (draft(base_url="https://host/v1?key=1"), "must not hold a user, a password, a query"),
        (draft(base_url="https://h/" + "a" * 2_048), "longer than 2048"),
        (draft(base_url="http://localhost:11434"), "base_url: localhost is an address of the server's own network"),
        (draft(base_url="http://a.localhost"), "LOCI_ALLOW_PRIVATE_PROVIDERS=true"),
        (draft(base_url="http://127.0.0.1"), "127.0.0.1 is an address"),
        (draft(base_url="http://2130706433"), "2130706433 is an address"),
        (draft(base_url="http://169.254.169.254"), "169.254.169.254, which nobody may call"),
        (draft(base_url="http://0xa9fea9fe/v1"), "169.254.169.254, which nobody may call"),
        (draft(base_url="http://[::ffff:10.0.0.1]"), "is an address of the server's own network"),
        (draft("ollama"), "base_url: providers of type ollama need one, for example https://ollama.example.com"),
        (draft("azure"), "base_url: providers of type azure need one"),
        (
            draft("azure", base_url="https://a.openai.azure.com", api_key=""),
            "api_key: providers of type azure need one",
        ),
        (draft("bedrock", api_key=""), "api_key: providers of type bedrock need one"),
        (draft("bedrock", region="evil.com/#"), "region: 'evil.com/#' is no region"),
        (draft("azure", base_url="https://a.b", api_version="1&x"), "api_version: '1&x' is no version"),
        (draft("bedrock", options={"session_token": "t"}), "options: session_token is none of"),
        (draft("bedrock", options={"control_url": "http://10.0.0.1"}), "options.control_url: 10.0.0.1 is an address"),
        # Without a key it would be the server's own account; other kinds of credentials read files or run commands.
        (draft("google_vertex", api_key=""), "api_key: providers of type google_vertex need one"),
        (draft("google_vertex", api_key="sk"), "api_key: expected the JSON of a Google service account"),
        (draft("google_vertex", api_key='{"type": "external_account"}'), '("type": "service_account"'),
        (
            draft("google_vertex", api_key=orjson.dumps(ACCOUNT | {"token_uri": "http://10.0.0.1"}).decode()),
            '("type": "service_account"',
        ),
        (draft(options={"tier": "free"}), "options: tier is none of max_concurrency, models"),
        (draft("cerebras", options={"tier": "gold"}), "options.tier: it is not free or paid"),
        (draft(options={"max_concurrency": 0}), "options.max_concurrency: it is not a whole number"),
        (draft(options={"max_concurrency": True}), "options.max_concurrency: it is not a whole number"),
        (draft(options={"websocket": "yes"}), "options.websocket: it is neither true nor false"),
        (draft(options={"models": {"a": {"tools": 1}}}), "options.models: a: tools is neither true nor false"),
        (draft(options={"models": []}), "options.models: models is not a JSON object"),
        (draft(options={"models": {"a" * 300_000: {}}}), "options: they are longer than 262144 bytes"),
    ],
)
def test_what_is_refused_and_why(given: ProviderSettings, problem: str) -> None:
    with pytest.raises(ProviderInvalid, match=re.escape(problem)) as caught:
        validate(given, allow_private=False)
    assert "sk-1" not in str(caught.value)


def test_the_operator_may_allow_private_addresses() -> None:
    assert validate(draft("ollama"), allow_private=True).base_url == "http://localhost:11434"
    assert validate(draft(base_url="http://10.0.0.1:8000"), allow_private=True).base_url == "http://10.0.0.1:8000/v1"
    with pytest.raises(ProviderInvalid, match="nobody may call"):
        validate(draft(base_url="http://169.254.169.254"), allow_private=True)


def test_keys_are_not_in_what_is_printed() -> None:
    assert "sk-1" not in repr(draft(access_key="AKIA"))
    assert "AKIA" not in repr(draft(access_key="AKIA"))
