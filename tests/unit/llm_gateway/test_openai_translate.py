"""The neutral chat as Chat Completions and back."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import (
    ChatRequest,
    Delta,
    FinishReason,
    Image,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolMode,
    ToolResult,
    Usage,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmEmptyResponse
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.openai.profiles import PLAIN
from services.llm_gateway.vendors.openai.replies import Reader, read_refusal
from services.llm_gateway.vendors.openai.translate import body_of
from tests.fakes.openai_server import refusal
from tests.unit.llm_gateway.builders import assistant, call, model, request, results, system, tool, user

PERSON: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def body(asked: ChatRequest, handle: str = "openai/gpt-4o-mini", *, stream: bool = False) -> dict[str, Any]:
    """The request's body, which the fake vendor accepts."""
    value: dict[str, Any] = orjson.loads(body_of(asked, model(handle), stream=stream))
    assert refusal(value) is None
    return value


def test_a_whole_conversation() -> None:
    asked = request(
        system("Be kind."),
        user("Roll twice."),
        assistant(
            Reasoning("hm", "sig"), RedactedReasoning("x"), "Rolling.", call("c1", "roll", n=6), call("c2", "roll")
        ),
        results(("c1", "4"), ("c2", "error: no")),
        user("And?", "Well?"),
        tools=[tool("roll", n="integer", strict=True)],
        max_output_tokens=50,
        temperature=0.5,
    )
    sent = body(asked, stream=True)
    assert sent["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Roll twice."},
        {
            "role": "assistant",
            "content": "Rolling.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "roll", "arguments": '{"n":6}'}},
                {"id": "c2", "type": "function", "function": {"name": "roll", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "tool", "tool_call_id": "c2", "content": "error: no"},
        {"role": "user", "content": "And?\nWell?"},
    ]
    assert sent["tools"][0]["function"] == {
        "name": "roll",
        "description": "Does roll.",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": ["integer", "null"]}},
            "required": ["n"],
            "additionalProperties": False,
        },
        "strict": True,
    }
    assert (sent["max_tokens"], sent["temperature"]) == (50, 0.5)
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["tool_choice"] == "auto"
    assert not sent.keys() & {"parallel_tool_calls", "reasoning_effort", "max_completion_tokens"}


def test_arguments_go_back_byte_for_byte() -> None:
    broken = ToolCall("c", "f", '{"a": 1,,}')
    sent = body(request(user("x"), assistant(broken), results(("c", "bad arguments"))))
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"a": 1,,}'
    assert sent["messages"][1]["content"] is None


def test_pictures_of_users_and_of_tools() -> None:
    picture = Image("iVBORw==", media_type="image/png", detail="low")
    link = Image(url="https://host/p.png")
    seen = ToolResult("c", [Text("a chart"), picture])
    sent = (
        body(request(user("look", picture, link), assistant(call("c", "draw")), results()))["messages"]
        if False
        else body(
            request(user("look", picture, link), assistant(call("c", "draw")), type(user())(results().role, [seen]))
        )["messages"]
    )
    data = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}}
    assert sent[0]["content"] == [
        {"type": "text", "text": "look"},
        data,
        {"type": "image_url", "image_url": {"url": "https://host/p.png"}},
    ]
    assert sent[2] == {"role": "tool", "tool_call_id": "c", "content": "a chart\n(1 picture(s) in the next message)"}
    assert sent[3] == {"role": "user", "content": [data]}


def test_tool_choices() -> None:
    tools = [tool("f")]
    assert body(request(user("x"), tools=tools, tool_choice=ToolMode.REQUIRED))["tool_choice"] == "required"
    assert body(request(user("x"), tools=tools, tool_choice=ToolMode.NONE))["tool_choice"] == "none"
    named = body(request(user("x"), tools=tools, tool_choice="f", parallel_tool_calls=False))
    assert named["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert named["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(request(user("x"), tools=tools, parallel_tool_calls=True))


@pytest.mark.parametrize(
    ("name", "tools", "effort", "sent"),
    [
        ("gpt-4o-mini", True, "minimal", None),
        ("gpt-5-mini", True, "minimal", "minimal"),
        ("gpt-5-mini", True, "none", "minimal"),
        ("gpt-5.1", True, "minimal", "none"),
        ("gpt-5.6-luna", True, "high", "none"),
        ("gpt-6-sol", True, None, "none"),
        ("gpt-6-sol", False, "high", "high"),
        ("gpt-6-sol", False, None, None),
        ("o4-mini", True, "minimal", "low"),
        ("o4-mini", True, None, "medium"),
        ("gpt-5-mini", True, None, "minimal"),
        ("gpt-5.1", False, None, "none"),
    ],
)
def test_reasoning_effort_as_each_model_takes_it(name: str, tools: bool, effort: str | None, sent: str | None) -> None:
    settings = {"reasoning": {"reasoning_effort": effort}} if effort else {}
    asked = request(
        user("x"), tools=[tool("f")] if tools else [], settings=settings, temperature=0.2, max_output_tokens=9
    )
    made = body(asked, f"openai/{name}")
    assert made.get("reasoning_effort") == sent
    reasons = not name.startswith("gpt-4")
    assert ("temperature" in made, "max_completion_tokens" in made) == (not reasons, reasons)


def test_settings() -> None:
    settings = {
        "thinking": {"type": "enabled"},
        "seed": None,
        "strict": True,
    }
    made = body(request(user("x"), settings=settings))
    assert not made.keys() & {"thinking", "seed", "strict"}
    with pytest.raises(LlmBadRequest, match="unknown keys tempreature"):
        body(request(user("x"), settings={"tempreature": 1}))


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        (ResponseFormat(), {"type": "json_object"}),
        (
            ResponseFormat(PERSON, "person", True),
            {
                "type": "json_schema",
                "json_schema": {"name": "person", "schema": {**PERSON, "additionalProperties": False}, "strict": True},
            },
        ),
        # What is not said by every key of it cannot be enforced without another meaning.
        (
            ResponseFormat({**PERSON, "required": []}, "person", True),
            {
                "type": "json_schema",
                "json_schema": {"name": "person", "schema": {**PERSON, "required": []}, "strict": False},
            },
        ),
        (
            ResponseFormat({"type": "object"}),
            {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}},
        ),
    ],
)
def test_response_format(wanted: ResponseFormat, sent: dict[str, Any]) -> None:
    assert body(request(user("x"), response_format=wanted))["response_format"] == sent


@pytest.mark.parametrize(
    ("options", "name", "is_vendor", "sent"),
    [
        ({}, "gpt-4o", False, {}),
        ({"logprobs": True}, "gpt-4o", True, {"logprobs": True}),
        ({"logprobs": True, "top_logprobs": 3}, "gpt-4o", True, {"logprobs": True, "top_logprobs": 3}),
        ({"logprobs": True, "top_logprobs": 0}, "gpt-4o", True, {"logprobs": True}),
        ({"logprobs": True}, "gpt-5", True, {}),
        ({"token_ids": True}, "gpt-4o", True, {"logprobs": True}),
        ({"token_ids": True}, "some-model", False, {"logprobs": True, "return_token_ids": True}),
    ],
)
def test_token_details(options: dict[str, Any], name: str, is_vendor: bool, sent: dict[str, Any]) -> None:
    asked = request(user("x"), **options)
    made = orjson.loads(body_of(asked, model(f"openai/{name}"), stream=False, is_vendor=is_vendor))
    assert {name: made[name] for name in ("logprobs", "top_logprobs", "return_token_ids") if name in made} == sent


def reader_of(builder: ReplyBuilder) -> Reader:
    return Reader(builder, request(handle="h"), PLAIN)


def whole(**message: Any) -> ReplyBuilder:
    builder = ReplyBuilder()
    finish = message.pop("finish_reason", "stop")
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    reader = reader_of(builder)
    choices = [{"message": message, "finish_reason": finish}]
    reader.take_whole({"id": "r1", "model": "m-1", "choices": choices, "usage": usage})
    list(reader.close())
    return builder


def test_a_whole_reply() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]
    reply = whole(content="hi", reasoning_content="hm", tool_calls=calls).generation(request(handle="h"), "openai", 100)
    assert list(reply.message.parts) == [Reasoning("hm"), Text("hi"), ToolCall("c", "f", '{"a":1}')]
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert reply.usage == Usage(9, 3, cached_input_tokens=4)
    assert (reply.provider_response_id, reply.provider_model) == ("r1", "m-1")


@pytest.mark.parametrize(
    ("wire", "finish"), [("length", FinishReason.LENGTH), ("content_filter", FinishReason.CONTENT_FILTER)]
)
def test_finish_reasons_and_empty_replies(wire: str, finish: FinishReason) -> None:
    assert whole(content="x", finish_reason=wire).generation(request(handle="h"), "p", 1).finish_reason is finish
    with pytest.raises(LlmEmptyResponse, match="without any content"):
        whole(content=None, finish_reason=wire).generation(request(handle="h"), "p", 1)
    assert list(whole(content="").generation(request(handle="h"), "p", 1).message.parts) == []
    assert list(whole(content=None, refusal="I will not.").generation(request(handle="h"), "p", 1).message.parts) == [
        Text("I will not.")
    ]


def stream(*deltas: dict[str, Any], finish: str | None = "stop") -> tuple[ReplyBuilder, list[Delta]]:
    builder = ReplyBuilder()
    seen: list[Delta] = []
    chunks: list[dict[str, Any]] = [{"id": "r", "model": "m", "choices": [{"delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": None}]
    reader = reader_of(builder)
    for chunk in chunks:
        seen += reader.take_event(chunk)
    return builder, [*seen, *reader.close()]


def piece(index: int | None, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments} | ({"name": name} if name else {})
    value: dict[str, Any] = {"function": function} | ({"id": id} if id else {})
    return {"tool_calls": [value if index is None else {**value, "index": index}]}


def test_parallel_calls_in_a_stream() -> None:
    builder, seen = stream(
        {"role": "assistant", "content": "Go."},
        piece(0, "a", "f"),
        piece(0, arguments='{"x'),
        piece(1, "b", "g"),
        piece(0, arguments='":1}'),
        piece(1, arguments="{}"),
    )
    reply = builder.generation(request(handle="h"), "openai", 400)
    assert list(reply.message.parts) == [Text("Go."), ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}")]
    assert seen[1:3] == [ToolCallDelta(1, "a", "f", ""), ToolCallDelta(1, "a", "f", '{"x')]
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert reply.usage == Usage(100, 3, estimated=True)


def test_servers_that_number_every_call_0_or_give_no_number_or_id() -> None:
    same = stream(piece(0, "a", "f", "{}"), piece(0, "b", "f", "{}"))[0].generation(request(handle="h"), "p", 1)
    assert [part.id for part in same.message.parts if isinstance(part, ToolCall)] == ["a", "b"]
    unnamed = stream(piece(None, None, "f", "{}"))[0].generation(request(handle="h"), "p", 1).message.parts[0]
    assert isinstance(unnamed, ToolCall)
    assert unnamed.id.startswith("call_")
    no_arguments = stream(piece(0, "a", "f"))[0].generation(request(handle="h"), "p", 1).message.parts
    assert list(no_arguments) == [ToolCall("a", "f", "{}")]


def test_refusals_in_every_shape() -> None:
    full = {"error": {"message": "m", "type": "t", "code": "c", "param": None}}
    assert (read_refusal(400, full).message, read_refusal(400, full).code) == ("m", "c")
    assert read_refusal(400, full["error"]).kind == "t"
    assert read_refusal(404, {"detail": "Not Found"}).message == "Not Found"
    assert read_refusal(500, "plain").message == "plain"
    assert read_refusal(500, None).message == ""
