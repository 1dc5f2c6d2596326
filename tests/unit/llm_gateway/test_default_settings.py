"""Temperature and output limit of a call that leaves them open."""

from dataclasses import replace

import pytest

from services.llm_gateway.core.chat import ChatRequest, Message, Role, Text
from services.llm_gateway.core.default_settings import with_defaults
from services.llm_gateway.core.models import Capabilities, ChatModel


def model(provider_type: str, most: int | None, **capabilities: bool) -> ChatModel:
    return ChatModel("p", provider_type, "m", "", 128_000, None, most, Capabilities(**capabilities), "M")


REQUEST = ChatRequest("p/m", [Message(Role.USER, [Text("hello")])], fills_defaults=True)


@pytest.mark.parametrize(
    ("described", "temperature", "limit"),
    [
        (model("openai", 16_384), 1.0, 16_384),
        (model("openai", 32_768), 1.0, 16_384),
        (model("openai", 4_096), 1.0, 4_096),
        # Thoughts count as output.
        (model("openai", 128_000, reasoning=True, temperature=False), None, None),
        (model("openai", None), None, None),
        (model("ollama", 8_192), None, None),
        (model("anthropic", 64_000, reasoning=True, temperature=False), None, 16_384),
        (model("anthropic", 8_192), 1.0, 8_192),
    ],
)
def test_what_is_open_is_filled(described: ChatModel, temperature: float | None, limit: int | None) -> None:
    filled = with_defaults(REQUEST, described)
    assert (filled.temperature, filled.max_output_tokens) == (temperature, limit)


def test_what_is_set_stays() -> None:
    filled = with_defaults(replace(REQUEST, temperature=0.2, max_output_tokens=9), model("openai", 16_384))
    assert (filled.temperature, filled.max_output_tokens) == (0.2, 9)


def test_who_does_not_ask_gets_the_providers_defaults() -> None:
    plain = replace(REQUEST, fills_defaults=False)
    assert with_defaults(plain, model("openai", 16_384)) is plain
