"""The gateway's settings."""

import pytest

from services.common.settings import Env, SettingsError
from services.llm_gateway.settings import CallSettings, read_providers


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


def test_windows() -> None:
    settings = CallSettings.read(Env({"LOCI_MODEL_WINDOWS": '{"openai/foo": 32768}'}))
    assert settings.windows == {"openai/foo": 32768}
    assert CallSettings.read(Env({})).windows == {}


@pytest.mark.parametrize("value", ["{", "[]", '{"foo": 1}', '{"openai/foo": "1"}', '{"openai/foo": 0}'])
def test_wrong_windows_are_one_clear_line(value: str) -> None:
    with pytest.raises(SettingsError, match=r"LOCI_MODEL_WINDOWS is .* for example LOCI_MODEL_WINDOWS='"):
        CallSettings.read(Env({"LOCI_MODEL_WINDOWS": value}))


def test_a_base_url_without_scheme() -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL is 'localhost:8000'"):
        list(read_providers(Env({"OPENAI_BASE_URL": "localhost:8000"})))
