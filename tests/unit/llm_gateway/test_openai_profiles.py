"""Requests to each compatible vendor: only fields that it takes, in its own words."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import (
    ChatRequest,
    FinishReason,
    Generation,
    Image,
    Message,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    Usage,
)
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.provider_types import TYPES
from services.llm_gateway.vendors.openai.profiles import PLAIN, profile_of
from services.llm_gateway.vendors.openai.translate import body_of, complete_reply
from tests.fakes.openai_compatible import vendor_refusal
from tests.fakes.openai_vendors import FLAVOURS
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

TOOL = tool("roll", n="integer")
SIGNED = 'openrouter:{"index":0,"signature":"s","type":"reasoning.text"}'


def thinker(vendor: str, name: str = "m", *, reasons: bool = True) -> ChatModel:
    made = model(f"{vendor}/{name}")
    return replace(made, capabilities=replace(made.capabilities, reasoning=reasons))


def sent(
    vendor: str, asked: ChatRequest, name: str = "m", *, reasons: bool = True, stream: bool = False
) -> dict[str, Any]:
    """A request's body, which that vendor's fake accepts."""
    body: dict[str, Any] = orjson.loads(
        body_of(asked, thinker(vendor, name, reasons=reasons), stream=stream, is_vendor=True)
    )
    if vendor in FLAVOURS:
        assert vendor_refusal(FLAVOURS[vendor], body) is None
    return body


EVERYTHING: dict[str, Any] = {
    "temperature": 0.3,
    "max_output_tokens": 9,
    "parallel_tool_calls": False,
    "logprobs": True,
    "token_ids": True,
    "cache_key": "agent-1",
    "response_format": ResponseFormat({"type": "object", "properties": {}}, "x", True),
    "settings": {
        "reasoning_effort": "low",
        "seed": 1,
        "stop": ["x"],
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.1,
        "service_tier": "auto",
        "verbosity": "low",
    },
}


@pytest.mark.parametrize("choice", [ToolMode.AUTO, ToolMode.NONE, ToolMode.REQUIRED, "roll"])
@pytest.mark.parametrize("vendor", sorted(FLAVOURS))
def test_no_vendor_is_sent_what_it_refuses(vendor: str, choice: ToolMode | str) -> None:
    history = (
        system("Be kind."),
        user("Roll."),
        assistant(Reasoning("hm"), Reasoning("signed", SIGNED), call("call_of_another_vendor", "roll", n=6)),
        results(("call_of_another_vendor", "4")),
        user("And?", Image("iVBORw==", media_type="image/png")),
    )
    for strict in (False, True):
        asked = request(*history, tools=[replace(TOOL, strict=strict)], tool_choice=choice, **EVERYTHING)
        body = sent(vendor, asked, stream=True)
        assert body["stream"] is True


@pytest.mark.parametrize("name", [name for name, row in TYPES.items() if row.module.endswith("openai.client")])
def test_every_type_of_this_dialect_has_a_row_of_its_own(name: str) -> None:
    assert profile_of(name, is_vendor=True) is not PLAIN
    assert profile_of("openai", is_vendor=False) is PLAIN


@pytest.mark.parametrize(
    ("vendor", "limit"),
    [
        ("openai", "max_completion_tokens"),
        ("deepseek", "max_tokens"),
        ("groq", "max_completion_tokens"),
        ("mistral", "max_tokens"),
        ("zai", "max_tokens"),
        ("moonshot", "max_completion_tokens"),
    ],
)
def test_the_limit_by_its_name(vendor: str, limit: str) -> None:
    body = sent(vendor, request(user("x"), max_output_tokens=7))
    assert {name: body.get(name) for name in ("max_tokens", "max_completion_tokens") if name in body} == {limit: 7}


@pytest.mark.parametrize(
    ("vendor", "told"),
    [
        ("deepseek", {"reasoning_content": "hm"}),
        ("moonshot", {"reasoning_content": "hm"}),
        ("zai", {"reasoning_content": "hm"}),
        ("fireworks", {"reasoning_content": "hm"}),
        ("cerebras", {"reasoning": "hm"}),
        (
            "openrouter",
            {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s", "text": "seen"}]},
        ),
        ("groq", {}),
        ("xai", {}),
        ("together", {}),
        ("openai", {}),
    ],
)
def test_thoughts_go_back_to_who_wants_them(vendor: str, told: dict[str, Any]) -> None:
    thoughts = (Reasoning("hm"), Reasoning("seen", SIGNED), Reasoning("Claude's", "sig"), RedactedReasoning("Claude's"))
    asked = request(user("x"), assistant(*thoughts, "So.", call("abcdefghi", "roll")), results(("abcdefghi", "4")))
    message = sent(vendor, asked)["messages"][1]
    assert {name: value for name, value in message.items() if name.startswith("reasoning")} == told
    assert message["content"] == "So."


def test_mistrals_thoughts_are_parts_of_the_content() -> None:
    asked = request(user("x"), assistant(Reasoning("hm"), "So."), user("y"))
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    assert sent("mistral", asked)["messages"][1]["content"] == [thinking, {"type": "text", "text": "So."}]
    assert sent("mistral", asked, reasons=False)["messages"][1]["content"] == "So."


@pytest.mark.parametrize(
    ("vendor", "placeholder"), [("deepseek", ""), ("moonshot", " "), ("zai", None), ("groq", None)]
)
def test_a_call_without_thoughts_where_they_are_demanded(vendor: str, placeholder: str | None) -> None:
    asked = request(user("x"), assistant(call("c", "roll")), results(("c", "4")), assistant("4."), user("y"))
    _, called, _, said, _ = sent(vendor, asked)["messages"]
    assert called.get("reasoning_content") == placeholder
    assert "reasoning_content" not in said


def test_a_block_that_names_its_call_names_it_by_the_new_id() -> None:
    data = 'openrouter:{"data":"d","id":"call of gemini","index":0,"type":"reasoning.encrypted"}'
    asked = request(
        user("x"), assistant(RedactedReasoning(data), call("call of gemini", "roll")), results(("call of gemini", "4"))
    )
    message = sent("openrouter", asked)["messages"][1]
    assert message["reasoning_details"][0]["id"] == message["tool_calls"][0]["id"] != "call of gemini"


@pytest.mark.parametrize(
    ("vendor", "reasons", "required", "named", "none"),
    [
        ("mistral", True, "any", {"type": "function", "function": {"name": "roll"}}, "none"),
        ("groq", True, "required", {"type": "function", "function": {"name": "roll"}}, "none"),
        ("deepseek", False, "required", {"type": "function", "function": {"name": "roll"}}, "none"),
        ("deepseek", True, None, None, "none"),
        ("moonshot", True, None, None, "none"),
        ("zai", True, None, None, None),
    ],
)
def test_tool_choice(vendor: str, reasons: bool, required: Any, named: Any, none: Any) -> None:
    def chosen(choice: ToolMode | str) -> dict[str, Any]:
        asked = request(user("x"), tools=[TOOL], tool_choice=choice)
        return dict(orjson.loads(body_of(asked, thinker(vendor, reasons=reasons), stream=False, is_vendor=True)))

    assert chosen(ToolMode.REQUIRED).get("tool_choice") == required
    assert chosen("roll").get("tool_choice") == named
    assert chosen(ToolMode.NONE).get("tool_choice") == none
    # Where it cannot be said that none may be called, there are none.
    assert ("tools" in chosen(ToolMode.NONE)) is (none is not None)


def test_mistral_wants_the_model_to_speak_between_results_and_the_user() -> None:
    seen = ToolResult("abcdefghi", [Text("a chart"), Image("iVBORw==", media_type="image/png")])
    asked = request(user("x"), assistant(call("abcdefghi", "roll")), Message(Role.TOOL, [seen]), user("And?"))
    roles = [message["role"] for message in sent("mistral", asked)["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    # Its results hold pictures.
    assert [part["type"] for part in sent("mistral", asked)["messages"][2]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("settings", "made"),
    [
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, {"thinking": {"type": "enabled"}}),
        (
            {"thinking": {"type": "enabled", "clear_thinking": False}},
            {"thinking": {"type": "enabled", "clear_thinking": False}},
        ),
        ({"thinking": {"type": "adaptive"}}, {}),
    ],
)
def test_thinking_is_switched(settings: dict[str, Any], made: dict[str, Any]) -> None:
    for vendor in ("deepseek", "zai", "moonshot"):
        body = orjson.loads(
            body_of(request(user("x"), settings=settings), thinker(vendor), stream=False, is_vendor=True)
        )
        assert {name: body[name] for name in ("thinking", "reasoning_effort") if name in body} == made


def test_seeds_and_cache_keys_by_their_names() -> None:
    asked = request(user("x"), settings={"seed": 3}, cache_key="agent-1")
    mistral = sent("mistral", asked)
    assert (mistral["random_seed"], mistral["prompt_cache_key"], "seed" in mistral) == (3, "agent-1", False)
    assert sent("openai", asked)["prompt_cache_key"] == "agent-1"
    assert "prompt_cache_key" not in sent("groq", asked)
    plain = orjson.loads(body_of(asked, thinker("openai"), stream=False))
    assert "prompt_cache_key" not in plain


@pytest.mark.parametrize(
    ("name", "marked"), [("anthropic/claude-x", True), ("google/gemini-x", True), ("openai/gpt-x", False)]
)
def test_prompts_are_marked_for_the_cache_where_that_is_needed(name: str, marked: bool) -> None:
    asked = request(system("Be kind."), user("x"), assistant("y"), user("z"))
    messages = sent("openrouter", asked, name)["messages"]
    found = [
        index
        for index, message in enumerate(messages)
        if isinstance(message["content"], list) and "cache_control" in message["content"][-1]
    ]
    assert found == ([0, 3] if marked else [])


def test_a_schema_is_told_where_it_cannot_be_sent() -> None:
    wanted = ResponseFormat({"type": "object", "properties": {"a": {"type": "string"}}}, "x", True)
    for messages in ((system("Be kind."), user("x")), (user("x"),)):
        body = sent("deepseek", request(*messages, response_format=wanted))
        assert body["response_format"] == {"type": "json_object"}
        first = body["messages"][0]
        assert first["role"] == "system"
        assert "JSON" in first["content"]
        assert '{"type":"object","properties":{"a":{"type":"string"}}}' in first["content"]
    assert "JSON" in sent("zai", request(user("x"), response_format=ResponseFormat()))["messages"][0]["content"]


FREE = '{"type":"object","properties":{"a":{"type":"object"}}}'


def test_strict_is_for_each_tool_that_can_be_and_with_cerebras_for_all_or_none() -> None:
    free = replace(TOOL, name="free", parameters_json=FREE, strict=True)
    asked = request(user("x"), tools=[replace(TOOL, strict=True), free])
    stricts = {
        vendor: ["strict" in one["function"] for one in sent(vendor, asked)["tools"]]
        for vendor in ("openai", "mistral", "openrouter", "cerebras", "deepseek", "xai")
    }
    assert stricts == {
        "openai": [True, False],
        "mistral": [True, False],
        "openrouter": [True, False],
        "cerebras": [False, False],
        "deepseek": [False, False],
        "xai": [False, False],
    }
    alone = sent("cerebras", replace(asked, tools=asked.tools[:1]))["tools"]
    assert alone[0]["function"]["strict"] is True


def test_a_tool_that_is_too_large_to_be_strict_is_offered_without() -> None:
    properties = {f"p{number}": {"type": "string"} for number in range(5_001)}
    large = replace(
        TOOL, parameters_json=orjson.dumps({"type": "object", "properties": properties}).decode(), strict=True
    )
    (offered,) = sent("openai", request(user("x"), tools=[large]))["tools"]
    assert "strict" not in offered["function"]
    assert len(offered["function"]["parameters"]["properties"]) == 5_001


def test_nulls_that_strict_mode_asked_for_do_not_reach_the_tool() -> None:
    asked = request(user("x"), tools=[replace(TOOL, strict=True), replace(TOOL, name="loose")])
    calls = [ToolCall("1", "roll", '{"n":null}'), ToolCall("2", "loose", '{"n":null}')]
    reply = Generation(Message(Role.ASSISTANT, calls), FinishReason.TOOL_CALLS, Usage(1, 1))
    made = complete_reply(reply, asked, profile_of("openai", is_vendor=True)).message.parts
    assert list(made) == [ToolCall("1", "roll", "{}"), calls[1]]
    assert complete_reply(reply, asked, profile_of("xai", is_vendor=True)) is reply


def test_groqs_thoughts_are_asked_for_beside_the_text() -> None:
    assert sent("groq", request(user("x")), "qwen/qwen3-32b")["reasoning_format"] == "parsed"
    assert "reasoning_format" not in sent("groq", request(user("x")), "openai/gpt-oss-120b")
