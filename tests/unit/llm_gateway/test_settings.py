"""The gateway's settings."""

import re
from pathlib import Path

import pytest

from services.common.settings import Env, SettingsError
from services.llm_gateway.core.models import Price, ValueSource
from services.llm_gateway.core.overrides import Override
from services.llm_gateway.providers.environment import read_overrides, read_providers


def names(**values: str) -> list[tuple[str, str, str, bool]]:
    configs = read_providers(Env(values))
    return [(config.name, config.base_url, config.api_key, config.is_vendor) for config in configs]


def test_providers_are_those_with_a_key_or_a_base_url() -> None:
    loci = ("loci", "", "none", True)
    assert names() == [loci]
    assert names(OPENAI_API_KEY="sk", ANTHROPIC_BASE_URL="http://host:1/v1") == [
        loci,
        ("openai", "https://api.openai.com/v1", "sk", True),
        ("anthropic", "http://host:1", "none", False),
    ]
    assert "sk-secret" not in repr(list(read_providers(Env({"OPENAI_API_KEY": "sk-secret"}))))


def said(**values: str) -> dict[str, Override]:
    return dict(read_overrides(Env(values)).of_provider("openai").models)


def test_what_is_said_of_models() -> None:
    assert said() == {}
    assert said(LOCI_MODEL_WINDOWS='{"openai/foo": 32768, "groq/foo": 1}') == {"foo": Override(32768)}
    assert said(LOCI_MODEL_WINDOWS='{"openai-proxy/foo": 32768}') == {"foo": Override(32768)}
    models = '{"openai/foo": {"context_window": 5, "tools": false, "base_model": "gpt-4o", "price": {"input": 0.5}}}'
    [foo] = said(LOCI_MODELS=models).values()
    assert (foo.context_window, foo.capabilities, foo.base_model) == (5, {"tools": False}, "gpt-4o")
    assert foo.price == Price(500, 0, source=ValueSource.OVERRIDE)
    both = said(LOCI_MODELS='{"openai/foo": {"vision": true}}', LOCI_MODEL_WINDOWS='{"openai/foo": 7}')
    assert both == {"foo": Override(7, capabilities={"vision": True})}


def test_prices_are_replaced_by_handle_and_for_a_whole_provider() -> None:
    prices = '{"openai/*": {"input": 1, "output": 2}, "openai/a": {"input": 3, "cached_input": 0.3, "cache_write": 4}}'
    models = '{"openai/b": {"price": {"input": 9}, "tools": true}}'
    overrides = read_overrides(Env({"LOCI_PRICES": prices, "LOCI_MODELS": models})).of_provider("openai")
    for_all = Price(1_000, 2_000, source=ValueSource.OVERRIDE)
    assert overrides.of("a").price == Price(3_000, 0, 300, 4_000, ValueSource.OVERRIDE)
    assert (overrides.of("b").price, overrides.of("b").capabilities) == (for_all, {"tools": True})
    assert overrides.of("anything").price == for_all


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("LOCI_MODELS", "{", "LOCI_MODELS is not JSON"),
        ("LOCI_MODELS", "[]", "it is not a JSON object"),
        ("LOCI_MODELS", '{"openai/a": {"windows": 1}}', "openai/a: windows is none of context_window"),
        ("LOCI_MODELS", '{"openai/a": {"tools": 1}}', "openai/a: tools is neither true nor false"),
        ("LOCI_MODELS", '{"openai/a": {"dimensions": 16001}}', "dimensions is not a whole number from 1 to 16000"),
        ("LOCI_MODELS", '{"a": {}}', "'a' is not a handle"),
        ("LOCI_PRICES", '{"openai/a": {"output": 1}}', "openai/a: a price is a JSON object of input"),
        ("LOCI_PRICES", '{"openai/a": {"input": -1}}', "the price of input is not a number"),
        ("LOCI_PRICES", '{"openai/a": {"input": 1, "per": 1}}', "a price is a JSON object of input"),
        ("LOCI_PRICES", "/nowhere/prices.json", "LOCI_PRICES names /nowhere/prices.json, which cannot be read"),
    ],
)
def test_wrong_models_and_prices_are_one_clear_line(name: str, value: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(problem)) as caught:
        read_overrides(Env({name: value}))
    assert "\n" not in str(caught.value)


def test_models_come_from_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text('{"openai/foo": {"context_window": 8192}}')
    assert said(LOCI_MODELS=str(path)) == {"foo": Override(8192)}


def test_every_types_settings_reach_its_provider(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    account.write_text('{"type": "service_account"}')
    values = {
        "AZURE_API_KEY": "k",
        "AZURE_BASE_URL": "https://a.openai.azure.com/",
        "AZURE_API_VERSION": "2024-10-21",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_REGION": "eu-central-1",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": "europe-west1",
        "GOOGLE_APPLICATION_CREDENTIALS": str(account),
        "CEREBRAS_API_KEY": "c",
        "CEREBRAS_TIER": "paid",
        "OPENAI_API_KEY": "o",
        "OPENAI_WEBSOCKET": "yes",
    }
    found = {config.name: config for config in read_providers(Env(values))}
    assert found.keys() == {"loci", "azure", "bedrock", "google_vertex", "cerebras", "openai"}
    azure, bedrock, vertex = found["azure"], found["bedrock"], found["google_vertex"]
    assert (azure.base_url, azure.api_version) == ("https://a.openai.azure.com", "2024-10-21")
    assert (bedrock.access_key, bedrock.api_key, bedrock.region) == ("AKIA", "s", "eu-central-1")
    assert bedrock.options == {"session_token": "t"}
    assert (vertex.api_key, vertex.region, vertex.options["project"]) == (account.read_text(), "europe-west1", "p")
    assert found["cerebras"].options == {"tier": "paid"}
    assert found["openai"].options == {"websocket": True}
    # A bearer token stands alone.
    bearer = {config.name: config for config in read_providers(Env(values | {"AWS_BEARER_TOKEN_BEDROCK": "b"}))}
    assert (bearer["bedrock"].api_key, bearer["bedrock"].access_key) == ("b", "")


def test_several_providers_of_one_type() -> None:
    one = '{"name": "a", "provider_type": "openai", "base_url": "http://localhost:1"}'
    other = '{"name": "b", "provider_type": "openai", "api_key": "sk-b", "options": {"max_concurrency": 2}}'
    _, first, second = read_providers(Env({"LOCI_PROVIDERS": f"[{one}, {other}]"}))
    assert (first.name, first.base_url, first.api_key, first.is_vendor) == ("a", "http://localhost:1/v1", "none", False)
    assert (second.base_url, second.api_key, second.is_vendor) == ("https://api.openai.com/v1", "sk-b", True)
    assert second.options == {"max_concurrency": 2}
    assert "sk-b" not in repr(second)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{}", "it is not a JSON list of objects"),
        ("nonsense", "it is not a JSON list of objects"),
        ('[{"name": "a b", "provider_type": "openai", "api_key": "sk-secret"}]', "'a b' is not 1 to 64 letters"),
        ('[{"name": "a", "provider_type": "opena", "api_key": "sk-secret"}]', "'opena' is none of anthropic, azure"),
        ('[{"name": "a", "provider_type": "openai"}]', "'a': api_key: providers of type openai need one"),
        ('[{"name": "a", "key": "sk-secret"}]', "key is none of name, provider_type"),
        ('[{"name": "a", "provider_type": "openai", "api_key": 1}]', "api_key is not a text"),
        ('[{"name": "loci", "provider_type": "openai", "api_key": "sk-secret"}]', "give it another name"),
    ],
)
def test_wrong_lists_of_providers_are_one_clear_line_without_their_keys(value: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(problem)) as caught:
        read_providers(Env({"LOCI_PROVIDERS": value}))
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["{", "[]", '{"foo": 1}', '{"openai/foo": "1"}', '{"openai/foo": 0}'])
def test_wrong_windows_are_one_clear_line(value: str) -> None:
    with pytest.raises(SettingsError, match=r"LOCI_MODEL_WINDOWS is .*for example LOCI_MODEL_WINDOWS='"):
        read_overrides(Env({"LOCI_MODEL_WINDOWS": value}))


def test_a_base_url_without_scheme() -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL is 'localhost:8000'"):
        read_providers(Env({"OPENAI_BASE_URL": "localhost:8000"}))
