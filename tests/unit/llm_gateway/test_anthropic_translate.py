"""The neutral chat as the Messages API and back."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import (
    ChatRequest,
    Delta,
    FinishReason,
    Image,
    Message,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolMode,
    ToolResult,
    Usage,
)
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.anthropic.replies import Reader
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL, body_of
from tests.fakes.anthropic_rules import complain
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

CACHE = {"cache_control": {"type": "ephemeral"}}
BINDING = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def body(asked: ChatRequest, handle: str = "anthropic/claude-haiku-4-5", *, stream: bool = False) -> dict[str, Any]:
    """The request's body, which the fake vendor accepts."""
    value: dict[str, Any] = orjson.loads(body_of(asked, model(handle), stream=stream))
    assert complain(value, "2026-10-21") is None
    return value


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_a_whole_conversation() -> None:
    thoughts = (Reasoning("hm", "sig"), Reasoning("unsigned"), RedactedReasoning("x"))
    asked = request(
        system("Be kind."),
        user("Roll twice."),
        assistant(*thoughts, "Rolling.", call("c1", "roll", n=6), call("c2", "roll")),
        results(("c1", "4")),
        results(("c2", "no"), is_error=True),
        user("And?"),
        tools=[tool("roll", n="integer")],
        temperature=0.5,
    )
    sent = body(asked, stream=True)
    assert sent["system"] == [{**text("Be kind."), **CACHE}]
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
        text("Rolling."),
        {"type": "tool_use", "id": "c1", "name": "roll", "input": {"n": 6}},
        {"type": "tool_use", "id": "c2", "name": "roll", "input": {}},
    ]
    assert sent["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("4")]},
        {"type": "tool_result", "tool_use_id": "c2", "content": [text("no")], "is_error": True},
        {**text("And?"), **CACHE},
    ]
    assert sent["max_tokens"] == 64_000
    assert sent["tool_choice"] == {"type": "auto"}
    assert sent["stream"] is True


def test_results_come_first_and_empty_text_is_left_out() -> None:
    asked = request(user("x"), assistant("", call("c", "f")), user("meanwhile"), results(("c", "")), user(""))
    content = body(asked)["messages"][2]["content"]
    assert content == [{"type": "tool_result", "tool_use_id": "c"}, {**text("meanwhile"), **CACHE}]


def test_a_history_that_begins_or_ends_with_the_model() -> None:
    roles = [message["role"] for message in body(request(assistant("Hi."), user("x"), assistant("y")))["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


def test_arguments_that_are_no_object() -> None:
    broken = ToolCall("c", "f", '{"a": 1,,}')
    sent = body(request(user("x"), assistant(broken), results(("c", "bad"))))
    assert sent["messages"][1]["content"][0]["input"] == {"unparsed_arguments": '{"a": 1,,}'}


def test_pictures() -> None:
    picture, link = Image("iVBORw==", media_type="image/png"), Image(url="https://host/p.png")
    drawn = Message(Role.TOOL, [ToolResult("c", [Text("chart"), picture])])
    sent = body(request(user(picture, link), assistant(call("c", "draw")), drawn))["messages"]
    data = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://host/p.png"}}
    assert sent[0]["content"] == [data, {**linked, **CACHE}]
    assert sent[2]["content"][0]["content"] == [text("chart"), data]


def test_tool_choices() -> None:
    tools = [tool("f", strict=True)]
    assert body(request(user("x"), tools=tools))["tools"][0]["strict"] is True
    required = request(user("x"), tools=tools, tool_choice=ToolMode.REQUIRED, parallel_tool_calls=False)
    assert body(required)["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    none = request(user("x"), tools=tools, tool_choice=ToolMode.NONE, parallel_tool_calls=False)
    assert body(none)["tool_choice"] == {"type": "none"}
    assert body(request(user("x"), tools=tools, tool_choice="f"))["tool_choice"] == {"type": "tool", "name": "f"}


@pytest.mark.parametrize(
    ("name", "thinking"),
    [
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1024}),
        ("claude-sonnet-4-5-20250929", {"type": "enabled", "budget_tokens": 1024}),
        ("claude-opus-4-8", {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-5-5", {"type": "adaptive", "display": "summarized", **BINDING}),
    ],
)
def test_settings(name: str, thinking: dict[str, Any]) -> None:
    settings = {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "effort": "low",
        "verbosity": "high",
        "reasoning": {"reasoning_effort": "high"},
    }
    made = body(request(user("x"), settings=settings, max_output_tokens=2048), f"anthropic/{name}")
    assert made["thinking"] == thinking
    assert made["output_config"] == {"effort": "low"}
    assert made["max_tokens"] == 2048


@pytest.mark.parametrize("name", ["claude-haiku-4-5", "claude-opus-4-8", "claude-haiku-5-5"])
def test_a_model_that_must_call_does_not_think(name: str) -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    forced = request(user("x"), settings=settings, tools=[tool("f")], tool_choice="f")
    made = body(forced, f"anthropic/{name}")
    assert "thinking" not in made
    assert made["tool_choice"] == {"type": "tool", "name": "f"}


PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "type": {"enum": [{"type": "object"}]}}}


def test_json_of_a_schema_is_demanded_by_the_wires_own_means() -> None:
    made = body(request(user("x"), response_format=ResponseFormat(PERSON)), "anthropic/claude-sonnet-5")
    schema = {**PERSON, "additionalProperties": False}
    assert made["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert "tools" not in made


@pytest.mark.parametrize(
    ("options", "name", "choice"),
    [
        ({"response_format": ResponseFormat()}, "claude-sonnet-5", {"type": "tool", "name": REPLY_TOOL}),
        ({"response_format": ResponseFormat(PERSON)}, "claude-opus-4-1", {"type": "tool", "name": REPLY_TOOL}),
        ({"response_format": ResponseFormat(), "tools": [tool("f")]}, "claude-sonnet-5", {"type": "any"}),
        (
            {"response_format": ResponseFormat(), "tools": [tool("f")], "tool_choice": ToolMode.NONE},
            "claude-sonnet-5",
            {"type": "tool", "name": REPLY_TOOL},
        ),
    ],
)
def test_other_json_is_demanded_as_the_input_of_a_call(
    options: dict[str, Any], name: str, choice: dict[str, Any]
) -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    made = body(request(user("x"), settings=settings, **options), f"anthropic/{name}")
    assert made["tools"][-1]["name"] == REPLY_TOOL
    assert made["tools"][-1]["input_schema"] == (options["response_format"].schema or {"type": "object"})
    assert made["tool_choice"] == choice
    assert not made.keys() & {"thinking", "output_config"}


def test_a_call_of_the_callers_own_tools_comes_before_json() -> None:
    asked = request(user("x"), tools=[tool("f")], tool_choice="f", response_format=ResponseFormat())
    made = body(asked)
    assert [offered["name"] for offered in made["tools"]] == ["f"]
    assert made["tool_choice"] == {"type": "tool", "name": "f"}


def read(*events: dict[str, Any]) -> tuple[ReplyBuilder, list[Delta]]:
    builder = ReplyBuilder()
    reader = Reader(builder)
    seen: list[Delta] = []
    for event in events:
        seen += reader.take_event(event)
    assert reader.ended
    return builder, seen


def test_a_stream() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 1}

    def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    def stop(index: int) -> dict[str, Any]:
        return {"type": "content_block_stop", "index": index}

    builder, seen = read(
        {"type": "message_start", "message": {"id": "m1", "model": "claude-x", "content": [], "usage": usage}},
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature="s1"),
        delta(0, type="signature_delta", signature="s2"),
        stop(0),
        start(1, {"type": "text", "text": ""}),
        {"type": "ping"},
        {"type": "invented_event", "x": 1},
        delta(1, type="text_delta", text="Go."),
        stop(1),
        start(2, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
        delta(2, type="input_json_delta", partial_json=""),
        delta(2, type="input_json_delta", partial_json='{"a":'),
        delta(2, type="input_json_delta", partial_json="1}"),
        stop(2),
        start(3, {"type": "tool_use", "id": "t2", "name": "g", "input": {"at": "once"}}),
        stop(3),
        start(4, {"type": "tool_use", "id": "t3", "name": "h", "input": {}}),
        stop(4),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 2}},
        },
        {"type": "message_stop"},
    )
    reply = builder.generation(request(handle="h"), "anthropic", 1)
    assert list(reply.message.parts) == [
        Reasoning("hm", "s1s2"),
        Text("Go."),
        ToolCall("t1", "f", '{"a":1}'),
        ToolCall("t2", "g", '{"at":"once"}'),
        ToolCall("t3", "h", "{}"),
    ]
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert reply.usage == Usage(28, 9, cached_input_tokens=20, cache_write_tokens=3, reasoning_tokens=2)
    assert seen == [
        ReasoningDelta(0, "hm"),
        TextDelta(1, "Go."),
        ToolCallDelta(2, "t1", "f", ""),
        ToolCallDelta(2, "t1", "f", '{"a":'),
        ToolCallDelta(2, "t1", "f", "1}"),
        ToolCallDelta(3, "t2", "g", ""),
        ToolCallDelta(3, "t2", "g", '{"at":"once"}'),
        ToolCallDelta(4, "t3", "h", ""),
    ]


@pytest.mark.parametrize(
    ("wire", "finish"),
    [
        ("end_turn", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.CONTENT_FILTER),
        ("something_new", FinishReason.UNKNOWN),
    ],
)
def test_finish_reasons(wire: str, finish: FinishReason) -> None:
    builder = ReplyBuilder()
    Reader(builder).take_whole(
        {"id": "m", "model": "c", "content": [text("hi")], "stop_reason": wire, "usage": {"output_tokens": 1}}
    )
    assert builder.generation(request(handle="h"), "anthropic", 1).finish_reason is finish
