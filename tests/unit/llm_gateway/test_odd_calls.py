# ruff: noqa: E501 - a stream a line
"""Tool calls as compatible servers stream them: one call is one, two are two."""

from typing import Any

import pytest

from services.llm_gateway.core.chat import FinishReason, ToolCall, ToolCallDelta
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.openai.profiles import PLAIN
from services.llm_gateway.vendors.openai.replies import Reader
from tests.unit.llm_gateway.builders import request, tool

TOOLS = [tool(name) for name in ("f", "g", "get", "get_city", "ping")]
Entry = dict[str, Any]


def entry(index: Any = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Entry:
    """One entry of `tool_calls`; what is None is not there."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    head = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**head, "function": function}


def read(*deltas: list[Entry] | dict[str, Any]) -> tuple[list[ToolCall], list[ToolCallDelta]]:
    """The calls of a stream of these deltas that ends with [DONE], and what was said of them."""
    builder = ReplyBuilder()
    reader = Reader(builder, request(tools=TOOLS), PLAIN)
    seen: list[Any] = []
    for delta in deltas:
        fields = {"tool_calls": delta} if isinstance(delta, list) else delta
        seen += reader.take_event({"choices": [{"delta": fields, "finish_reason": None}]})
    reader.take_done()
    seen += reader.close()
    reply = builder.generation(request(), "p", 1)
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    calls = [part for part in reply.message.parts if isinstance(part, ToolCall)]
    return calls, [one for one in seen if isinstance(one, ToolCallDelta)]


X, Y = '{"x":1}', '{"y":2}'
STREAMS: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "as OpenAI does": ([[entry(0, "a", "f", "")], [entry(0, None, None, '{"x"')], [entry(0, None, None, ":1}")]], [("a", "f", X)]),
    "the name is late": ([[entry(0, "a", None, "")], [entry(0, None, "get_city", {"x": 1})]], [("a", "get_city", X)]),
    "the name comes last": ([[entry(0, "a", None, '{"x"')], [entry(0, arguments=":1}")], [entry(0, None, "f")]], [("a", "f", X)]),
    "the name in pieces": ([[entry(0, "a", "get_", "")], [entry(0, None, "city", "")], [entry(0, arguments=X)]], [("a", "get_city", X)]),
    "pieces of a name that is a name": ([[entry(0, "a", "get")], [entry(0, None, "_city", '{"x"')], [entry(0, arguments=":1}")]], [("a", "get_city", X)]),
    "a name that grows": ([[entry(0, "a", "get")], [entry(0, "a", "get_city")], [entry(0, arguments=X)]], [("a", "get_city", X)]),
    "a name nobody offered": ([[entry(0, "a", "zap", "")], [entry(0, arguments=X)]], [("a", "zap", X)]),
    "all at index 0, told by id": ([[entry(0, "a", "f", "")], [entry(0, arguments=X)], [entry(0, "b", "g", "")], [entry(0, arguments=Y)]], [("a", "f", X), ("b", "g", Y)]),
    "all at index 0, the same tool": ([[entry(0, "a", "f", X)], [entry(0, "b", "f", X)]], [("a", "f", X), ("b", "f", X)]),
    "no index": ([[entry(None, "a", "f", "")], [entry(None, arguments=X)], [entry(None, "b", "g", "")], [entry(None, arguments=Y)]], [("a", "f", X), ("b", "g", Y)]),
    "no index and no id": ([[entry(None, None, "f", X)], [entry(None, None, "f", Y)]], [("", "f", X), ("", "f", Y)]),
    "the same once more, without an id": ([[entry(None, None, "f", X)], [entry(None, None, "f", X)]], [("", "f", X)]),
    "an index for each piece": ([[entry(0, "a", "f", "")], [entry(1, arguments='{"x"')], [entry(2, arguments=":1}")]], [("a", "f", X)]),
    "an index for each piece of a name": ([[entry(0, "a", "get_")], [entry(1, None, "city")], [entry(2, arguments=X)]], [("a", "get_city", X)]),
    "an id for each piece": ([[entry(0, "a", "f", "")], [entry(0, "b", None, '{"x"')], [entry(0, "c", None, ":1}")]], [("a", "f", X)]),
    "an id and an index for each piece": ([[entry(0, "a", "f", "")], [entry(1, "b", None, '{"x"')], [entry(2, "c", None, ":1}")]], [("a", "f", X)]),
    "the head with each piece": ([[entry(0, "a", "f", '{"x"')], [entry(0, "a", "f", ":1}")], [entry(0, "a", "f", "")]], [("a", "f", X)]),
    "all of it once more": ([[entry(0, "a", "f", '{"x"')], [entry(0, arguments=":1}")], [entry(0, "a", "f", X)]], [("a", "f", X)]),
    "the arguments once more": ([[entry(0, "a", "f", X)], [entry(0, arguments=X)]], [("a", "f", X)]),
    "an id that repeats": ([[entry(0, "a", "f", X)], [entry(1, "a", "g", Y)]], [("a", "f", X), ("", "g", Y)]),
    "an id that repeats for one tool": ([[entry(0, "a", "f", X)], [entry(1, "a", "f", Y)]], [("a", "f", X), ("", "f", Y)]),
    "empty ids": ([[entry(0, "", "f", X)], [entry(0, "", "g", Y)]], [("", "f", X), ("", "g", Y)]),
    "{} before the arguments": ([[entry(0, "a", "f", "{}")], [entry(0, arguments=Y)]], [("a", "f", Y)]),
    "{} before the arguments, with the head": ([[entry(0, "a", "f", "{}")], [entry(0, "a", "f", Y)]], [("a", "f", Y)]),
    "no arguments": ([[entry(0, "a", "ping", "")], [entry(1, "b", "ping")]], [("a", "ping", "{}"), ("b", "ping", "{}")]),
    "side by side": ([[entry(0, "a", "f", "")], [entry(1, "b", "g", "")], [entry(1, arguments=Y)], [entry(0, arguments=X)]], [("a", "f", X), ("b", "g", Y)]),
    "side by side without indexes": ([[entry(None, "a", "f", '{"x"'), entry(None, "b", "g", '{"y"')], [entry(None, arguments=":1}"), entry(None, arguments=":2}")]], [("a", "f", X), ("b", "g", Y)]),
    "a call of nothing": ([[entry(0, "a", "f", X)], [entry(1, "", "", "")]], [("a", "f", X)]),
    "the id is late": ([[entry(0, None, "f", "")], [entry(0, "a", None, X)]], [("a", "f", X)]),
    "two objects under one head": ([[entry(0, "a", "f", X)], [entry(0, arguments=Y)]], [("a", "f", X), ("", "f", Y)]),
    "an object for the arguments": ([[entry(0, "a", "f", {"x": 1})]], [("a", "f", X)]),
    "no function around it": ([[{"index": 0, "id": "a", "name": "f", "arguments": X}]], [("a", "f", X)]),
    "nulls": ([[{"index": 0, "id": "a", "type": None, "function": {"name": "f", "arguments": None}}], [{"index": 0, "id": None, "function": {"name": None, "arguments": X}}]], [("a", "f", X)]),
    "an index of text": ([[entry("0", "a", "f", "")], [entry("0", arguments=X)]], [("a", "f", X)]),
    "the older field": ([{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": X}}], [("", "f", X)]),
    "half a character in each piece": ([[entry(0, "a", "f", '{"x":"\ud83d')], [entry(0, arguments='\ude00"}')]], [("a", "f", '{"x":"\U0001f600"}')]),
    "half a character, escaped": ([[entry(0, "a", "f", '{"x":"\\ud83d"}')]], [("a", "f", '{"x":"\\ufffd"}')]),
}  # fmt: skip


@pytest.mark.parametrize("stream", STREAMS)
def test_calls(stream: str) -> None:
    deltas, expected = STREAMS[stream]
    calls, said = read(*deltas)
    assert [(call.name, call.arguments_json) for call in calls] == [(name, text) for _, name, text in expected]
    assert [call.id for call, (id, _, _) in zip(calls, expected, strict=True) if id] == [
        id for id, _, _ in expected if id
    ]
    assert len({call.id for call in calls}) == len(calls)
    heard: dict[int, list[str]] = {}
    for delta in said:
        texts = heard.setdefault(delta.index, [delta.id, delta.name, ""])
        assert texts[:2] == [delta.id, delta.name]
        texts[2] += delta.arguments
    if "escaped" not in stream:
        assert [(id, name, text or "{}") for id, name, text in heard.values()] == [
            (call.id, call.name, call.arguments_json) for call in calls
        ]


def test_each_call_of_a_whole_reply_is_one() -> None:
    builder = ReplyBuilder()
    reader = Reader(builder, request(tools=TOOLS), PLAIN)
    calls = [
        entry(None, "a", "ping", ""),
        entry(None, "b", "ping", ""),
        entry(None, "b", "ping", ""),
        entry(0, "", "f", X),
    ]
    reader.take_whole({"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"}]})
    list(reader.close())
    parts = builder.generation(request(), "p", 1).message.parts
    assert [(part.name, part.arguments_json) for part in parts if isinstance(part, ToolCall)] == [
        ("ping", "{}"), ("ping", "{}"), ("f", X),
    ]  # fmt: skip


def test_a_stream_that_says_that_it_broke_is_not_complete() -> None:
    reader = Reader(ReplyBuilder(), request(), PLAIN)
    list(reader.take_event({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "error"}]}))
    reader.take_done()
    assert not reader.is_complete
