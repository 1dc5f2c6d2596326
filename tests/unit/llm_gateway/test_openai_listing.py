"""Lists of models of endpoints."""

from typing import Any

import pytest

from services.llm_gateway.core.models import ListedModel, ModelKind, Price, ValueSource
from services.llm_gateway.vendors.openai.listing import models_in
from services.llm_gateway.vendors.openai.profiles import profile_of
from tests.fakes.openai_vendors import FLAVOURS

ENDPOINT = ValueSource.ENDPOINT


def listed(vendor: str, *items: Any, tier: str = "") -> list[ListedModel]:
    return models_in({"data": list(items)}, profile_of(vendor or "openai", is_vendor=bool(vendor)), vendor, tier)


def one(vendor: str, tier: str = "", **item: Any) -> ListedModel:
    (made,) = listed(vendor, {"id": "m", **item}, tier=tier)
    return made


def of_flavour(vendor: str) -> dict[str, ListedModel]:
    return {model.name: model for model in listed(vendor, *FLAVOURS[vendor].models)}


@pytest.mark.parametrize(
    ("fields", "window", "output"),
    [
        ({"max_model_len": 4_096}, 4_096, None),
        ({"context_window": 131_072, "max_completion_tokens": 65_536}, 131_072, 65_536),
        ({"max_context_length": 32_768}, 32_768, None),
        (
            {"context_length": 1_000_000, "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000}},
            200_000,
            64_000,
        ),
        ({"limits": {"max_context_length": 65_536, "max_completion_tokens": 32_768}}, 65_536, 32_768),
        (
            {
                "providers": [
                    {"status": "live", "context_length": 131_072},
                    {"status": "error", "context_length": 8_192},
                ]
            },
            131_072,
            None,
        ),
        ({"context_length": None}, None, None),
        ({"context_length": "many"}, None, None),
        ({"context_length": 0}, None, None),
        ({"context_length": True}, None, None),
    ],
)
def test_windows_and_limits(fields: dict[str, Any], window: int | None, output: int | None) -> None:
    made = one("", **fields)
    assert (made.context_window, made.max_output_tokens) == (window, output)


@pytest.mark.parametrize(("tier", "window"), [("free", 8_192), ("paid", 131_072), ("", None)])
def test_windows_of_cerebras_are_those_of_the_tier(tier: str, window: int | None) -> None:
    assert one("cerebras", tier).context_window == window
    assert one("cerebras", tier, limits={"max_context_length": 65_536}).context_window == (window or 65_536)
    assert one("groq", tier).context_window is None
    (made,) = listed("cerebras", {"id": "gpt-oss-120b"}, tier=tier)
    assert made.capabilities == {"reasoning": True}


def test_openrouter_says_all() -> None:
    models = of_flavour("openrouter")
    claude = models["anthropic/claude-sonnet-4.5"]
    assert claude == ListedModel(
        "anthropic/claude-sonnet-4.5",
        200_000,
        64_000,
        "Claude",
        ModelKind.CHAT,
        {
            "tools": True,
            "reasoning": True,
            "structured_output": True,
            "vision": True,
            "logprobs": False,
            "temperature": False,
        },
        price=Price(3_000, 15_000, 300, 3_750, ENDPOINT),
    )
    assert models["some/painter"].kind is ModelKind.OTHER
    assert models["openai/text-embedding-3-small"].kind is ModelKind.EMBEDDING


@pytest.mark.parametrize(
    ("pricing", "price"),
    [
        ({"prompt": "0.00000015", "completion": "0.0000006"}, Price(150, 600, source=ENDPOINT)),
        ({"prompt": "0", "completion": "0"}, Price(0, 0, source=ENDPOINT)),
        ({"prompt": "-1", "completion": "-1"}, None),
        ({"input": 1.4, "output": 4.4, "cached_input": 0.26}, Price(1_400, 4_400, 260, source=ENDPOINT)),
        ({"input": 1.4}, None),
        ({}, None),
        ("free", None),
    ],
)
def test_prices(pricing: Any, price: Price | None) -> None:
    assert one("", pricing=pricing).price == price


@pytest.mark.parametrize(
    ("vendor", "name", "fields", "kind"),
    [
        ("openai", "gpt-4o", {}, ModelKind.UNKNOWN),
        ("openai", "gpt-4o-audio-preview", {}, ModelKind.OTHER),
        ("openai", "text-embedding-3-small", {}, ModelKind.EMBEDDING),
        ("together", "m", {"type": "chat"}, ModelKind.CHAT),
        ("together", "m", {"type": "language"}, ModelKind.OTHER),
        ("together", "m", {"type": "embedding"}, ModelKind.EMBEDDING),
        ("mistral", "m", {"capabilities": {"completion_chat": True}}, ModelKind.CHAT),
        ("mistral", "m", {"capabilities": {"completion_chat": False}}, ModelKind.OTHER),
        ("mistral", "codestral-embed-2505", {"capabilities": {"completion_chat": False}}, ModelKind.EMBEDDING),
        ("groq", "m", {"active": False}, ModelKind.OTHER),
        ("groq", "whisper-large-v3", {"active": True}, ModelKind.OTHER),
        ("fireworks", "m", {"supports_chat": True}, ModelKind.CHAT),
        ("fireworks", "m", {"supports_chat": False, "kind": "EMBEDDING_MODEL"}, ModelKind.EMBEDDING),
        ("xai", "grok-imagine-image", {}, ModelKind.OTHER),
        ("", "nomic-embed-text-v1.5", {}, ModelKind.EMBEDDING),
        ("", "some-model", {"object": "model"}, ModelKind.UNKNOWN),
        ("", "embedded-systems-coder", {}, ModelKind.UNKNOWN),
    ],
)
def test_kinds(vendor: str, name: str, fields: dict[str, Any], kind: ModelKind) -> None:
    assert one(vendor, **{**fields, "id": name}).kind is kind


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"capabilities": {"function_calling": True, "vision": False}}, {"tools": True, "vision": False}),
        ({"supports_image_in": True, "supports_reasoning": True}, {"vision": True, "reasoning": True}),
        ({"supports_tools": False}, {"tools": False}),
        (
            {"supported_features": ["tools", "structured_outputs"]},
            {"tools": True, "structured_output": True, "reasoning": False},
        ),
        (
            {"providers": [{"supports_tools": True, "supports_structured_output": False}, {"supports_tools": False}]},
            {"tools": True, "structured_output": False},
        ),
        ({"capabilities": ["chat"]}, {}),
        ({}, {}),
    ],
)
def test_capabilities(fields: dict[str, Any], said: dict[str, bool]) -> None:
    assert one("", **fields).capabilities == said


@pytest.mark.parametrize("reply", [None, [], {}, {"data": None}, {"data": ["x", {"name": "no id"}]}, "x"])
def test_what_is_no_list_of_models_has_none(reply: Any) -> None:
    assert models_in(reply, profile_of("openai", is_vendor=True), "openai") == []


def test_a_plain_list() -> None:
    assert [
        model.name
        for model in models_in([{"id": "a"}, {"id": "b"}], profile_of("together", is_vendor=True), "together")
    ] == ["a", "b"]
