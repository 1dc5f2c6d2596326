"""Histories to the wire and back, and streams cut anywhere: nothing that the wire can carry is lost."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.openai.details import settle
from services.llm_gateway.vendors.openai.profiles import PLAIN
from services.llm_gateway.vendors.openai.replies import Reader
from services.llm_gateway.vendors.openai.translate import body_of
from tests.fakes.openai_compatible import CompatibleServer
from tests.fakes.openai_server import request_view
from tests.fakes.openai_vendors import FLAVOURS
from tests.fakes.openai_wire import chat
from tests.fakes.script import Reply
from tests.fakes.script import ToolCall as ScriptedCall
from tests.unit.llm_gateway.builders import model, request, tool

# No database keeps NUL, so no reply does.
texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=20)
pictures = st.one_of(
    st.sampled_from([Image("iVBORw==", media_type="image/png"), Image("/9j/4A==", media_type="image/jpeg")]),
    st.builds(Image, url=st.just("https://host/p.png"), detail=st.sampled_from([None, "low"])),
)
arguments = st.dictionaries(st.text(max_size=5), st.integers(-9, 9), max_size=2).map(
    lambda value: orjson.dumps(value).decode()
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """A user's message, a reply with calls, their results, and the answer."""
    asked: list[Part] = [Text(draw(texts)), *draw(st.lists(pictures, max_size=2))]
    count = draw(st.integers(1, 3))
    calls = [ToolCall(f"call_{number}", draw(st.sampled_from(["a", "b"])), draw(arguments)) for number in range(count)]
    said: list[Part] = [Reasoning(draw(texts)), Text(draw(texts)), *calls]
    answers: list[Part] = [ToolResult(one.id, [Text(draw(texts))]) for one in calls]
    return [
        Message(Role.USER, asked),
        Message(Role.ASSISTANT, said),
        Message(Role.TOOL, answers),
        Message(Role.ASSISTANT, [Text(draw(texts))]),
    ]


def read_back(messages: list[dict[str, Any]]) -> list[Message]:
    """The wire's messages in neutral form; neighbouring results are one message."""
    made: list[Message] = []
    for message in messages:
        parts = list(_parts(message))
        if message["role"] == "tool" and made and made[-1].role is Role.TOOL:
            made[-1] = Message(Role.TOOL, [*made[-1].parts, *parts])
        else:
            made.append(Message(Role[message["role"].upper()], parts))
    return made


def _parts(message: dict[str, Any]) -> Iterator[Part]:
    content = message.get("content")
    said = list(_content(content)) if content else []
    if message["role"] == "tool":
        yield ToolResult(message["tool_call_id"], [part for part in said if isinstance(part, Text | Image)])
        return
    if thoughts := message.get("reasoning_content") or message.get("reasoning"):
        yield Reasoning(thoughts)
    yield from said
    for call in message.get("tool_calls") or ():
        yield ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])


def _content(content: Any) -> Iterator[Part]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match part:
            case {"type": "text", "text": text}:
                yield Text(text)
            case {"type": "thinking", "thinking": [{"text": text}]}:
                yield Reasoning(text)
            case {"type": "image_url", "image_url": dict(image)}:
                url = str(image["url"])
                kind, mark, data = url.removeprefix("data:").partition(";base64,")
                detail = str(image["detail"]) if "detail" in image else None
                yield Image(data, "", kind, detail) if mark else Image(url=url, detail=detail)


@pytest.mark.parametrize("vendor", ["deepseek", "moonshot", "zai", "cerebras", "fireworks", "mistral"])
@settings(max_examples=30)
@given(history=turns())
def test_a_history_comes_back_whole_with_its_thoughts(vendor: str, history: list[Message]) -> None:
    made = model(f"{vendor}/m")
    made = replace(made, capabilities=replace(made.capabilities, reasoning=True))
    body = orjson.loads(body_of(request(*history), made, stream=False, is_vendor=True))
    back = read_back(body["messages"])
    ids = {call.id for message in back for call in message.parts if isinstance(call, ToolCall)}
    if vendor == "mistral":
        back = renamed(back, history)
    assert back == history
    assert len(ids) == sum(isinstance(part, ToolCall) for part in history[1].parts)


def renamed(back: list[Message], history: list[Message]) -> list[Message]:
    """With the ids of the original: there they had another shape."""
    new = [part.id for message in back for part in message.parts if isinstance(part, ToolCall)]
    old = [part.id for message in history for part in message.parts if isinstance(part, ToolCall)]
    ids = dict(zip(new, old, strict=True))

    def of(part: Part) -> Part:
        if isinstance(part, ToolCall):
            return replace(part, id=ids[part.id])
        return replace(part, tool_call_id=ids[part.tool_call_id]) if isinstance(part, ToolResult) else part

    return [Message(message.role, [of(part) for part in message.parts]) for message in back]


@settings(max_examples=30)
@given(history=turns())
def test_without_a_place_for_thoughts_all_else_comes_back(history: list[Message]) -> None:
    body = orjson.loads(body_of(request(*history), model("openai/gpt-4o"), stream=False))
    expected = [Message(one.role, [part for part in one.parts if not isinstance(part, Reasoning)]) for one in history]
    assert read_back(body["messages"]) == expected


replies = st.builds(
    Reply,
    text=st.text(max_size=30),
    reasoning=st.text(max_size=20),
    redacted=st.sampled_from(["", "opaque"]),
    calls=st.lists(st.builds(ScriptedCall, st.just("f"), st.dictionaries(texts, texts, max_size=2)), max_size=2),
)


@pytest.mark.parametrize("vendor", ["openai", *sorted(FLAVOURS)])
@settings(max_examples=30)
@given(reply=replies, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_a_stream_cut_anywhere_is_the_whole_reply(vendor: str, reply: Reply, sizes: list[int]) -> None:
    whole, streamed = ReplyBuilder(), ReplyBuilder()
    at_once, in_pieces = reader_of(whole), reader_of(streamed)
    at_once.take_whole(orjson.loads(planned(vendor, reply, stream=False).body))
    list(at_once.close())
    frames = planned(vendor, reply, stream=True).frames
    assert frames is not None
    parser = SseParser()
    for piece in pieces(b"".join(frames), sizes):
        for event in parser.feed(piece):
            if event.data != b"[DONE]":
                list(in_pieces.take_event(orjson.loads(event.data)))
    list(in_pieces.close())
    assert message_of(streamed) == message_of(whole)
    assert (streamed.finish, streamed.usage) == (whole.finish, whole.usage)


def reader_of(builder: ReplyBuilder) -> Reader:
    return Reader(builder, request(handle="h", tools=[tool("f")]), PLAIN)


def planned(vendor: str, reply: Reply, *, stream: bool) -> Any:
    asked = request(Message(Role.USER, [Text("x")]), tools=[tool("f")])
    body = orjson.loads(body_of(asked, model("openai/gpt-4o"), stream=stream))
    made = chat(reply, request_view({**body, "stream_options": {"include_usage": True}}), 1)
    return made if vendor == "openai" else CompatibleServer(vendor).shaped(reply, made)


def pieces(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    start = number = 0
    while start < len(data):
        size = sizes[number % len(sizes)]
        yield data[start : start + size]
        start, number = start + size, number + 1


def message_of(builder: ReplyBuilder) -> list[Part]:
    if builder.is_empty:
        return []
    made = builder.generation(request(handle="h"), "p", 1)
    return [settle(part) for part in made.message.parts]


def test_details_go_back_as_they_came() -> None:
    text = {"type": "reasoning.text", "text": "two and two", "format": "anthropic-claude-v1", "index": 0, "id": "r1"}
    sealed = {"type": "reasoning.encrypted", "data": "opaque", "format": "google-gemini-v1", "index": 1, "id": "t1"}
    summary = {"type": "reasoning.summary", "summary": "in short", "format": "openai-responses-v1", "index": 2}
    details = [{**text, "signature": "sig"}, sealed, summary]
    builder = ReplyBuilder()
    reader_of(builder).take_whole(
        {"choices": [{"message": {"reasoning_details": details, "reasoning": "two and two"}}]}
    )
    parts = message_of(builder)
    assert [type(part) for part in parts] == [Reasoning, RedactedReasoning, Reasoning]
    asked = request(Message(Role.USER, [Text("x")]), Message(Role.ASSISTANT, [*parts, Text("4")]))
    body = orjson.loads(body_of(asked, model("openrouter/m"), stream=False))
    assert body["messages"][1]["reasoning_details"] == details
    # Another vendor's model is not shown them.
    for vendor in ("openai", "deepseek", "mistral"):
        body = orjson.loads(body_of(asked, model(f"{vendor}/m"), stream=False))
        assert body["messages"][1] == {"role": "assistant", "content": "4"}
