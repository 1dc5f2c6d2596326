"""Converse's replies and event stream as the neutral chat: nothing is lost, however the bytes are cut."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.llm_gateway.calls.coalesce import join_deltas
from services.llm_gateway.core.chat import (
    Delta,
    FinishReason,
    Generation,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.anthropic.replies import Reader as AnthropicReader
from services.llm_gateway.vendors.anthropic.translate import body_of as anthropic_body
from services.llm_gateway.vendors.bedrock.framing import EventStreamParser, Frame
from services.llm_gateway.vendors.bedrock.replies import Reader, read_refusal, status_of
from services.llm_gateway.vendors.bedrock.translate import body_of
from tests.fakes import anthropic_wire, bedrock_wire, script
from tests.fakes.script import Reply, RequestView
from tests.unit.llm_gateway.builders import model, request, user

CLAUDE = "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0"
SEEN = RequestView("m", "user", "x", 0, True, (), {})
CALLS = (script.ToolCall("roll", {"n": 6}, "c1"), script.ToolCall("toss", {"to": "ü€😀"}, "c2"))
REPLY = Reply(text="one two ü€😀", reasoning="hm, so", redacted="opaque", calls=CALLS)


def generation(builder: ReplyBuilder) -> Generation:
    return builder.generation(request(), "bedrock", 1)


def read(frames: Sequence[Frame], reader: Reader) -> list[Delta]:
    events = ({frame.name: orjson.loads(frame.payload)} for frame in frames)
    return [delta for event in events for delta in reader.take_event(event)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def test_a_stream_is_the_whole_reply_in_pieces() -> None:
    usage = script.Usage(100, 7, cached=40, cache_write=10)
    planned = bedrock_wire.message(REPLY, SEEN, 1, usage)
    streamed, whole = ReplyBuilder(), ReplyBuilder()
    reader = Reader(streamed)
    deltas = read(EventStreamParser().feed(b"".join(planned.frames or ())), reader)
    assert reader.ended
    body = orjson.loads(bedrock_wire.message(REPLY, RequestView("m", "user", "x", 0, False, (), {}), 1, usage).body)
    again = list(Reader(whole).take_whole(body))
    assert generation(streamed) == generation(whole)
    assert join_deltas(deltas) == join_deltas(again)
    made = generation(whole)
    assert list(made.message.parts) == [
        Reasoning("hm, so", "sig-of-the-fake"),
        RedactedReasoning("bedrock:b3BhcXVl"),
        Text("one two ü€😀"),
        ToolCall("c1", "roll", '{"n":6}'),
        ToolCall("c2", "toss", '{"to":"ü€😀"}'),
    ]
    assert made.finish_reason is FinishReason.TOOL_CALLS
    assert made.usage == Usage(150, 7, cached_input_tokens=40, cache_write_tokens=10)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_any_cut_of_the_binary_stream_gives_the_same_message(places: list[int]) -> None:
    data = b"".join(bedrock_wire.message(REPLY, SEEN, 1, script.Usage(1, 1)).frames or ())
    parser, builder = EventStreamParser(), ReplyBuilder()
    reader = Reader(builder)
    for chunk in cut(data, places):
        read(parser.feed(chunk), reader)
    expected = ReplyBuilder()
    read(EventStreamParser().feed(data), Reader(expected))
    assert generation(builder) == generation(expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=40), st.sampled_from(["\n", "\r\n"]))
def test_any_cut_of_anthropics_events_gives_the_same_message(places: list[int], line_end: str) -> None:
    reply = Reply(text=REPLY.text, reasoning="hm, so", redacted="opaque", calls=CALLS, line_end=line_end)
    data = b"".join(anthropic_wire.message(reply, SEEN, 1, script.Usage(1, 1)).frames or ())

    def made(chunks: list[bytes]) -> Generation:
        parser, builder = SseParser(), ReplyBuilder()
        reader = AnthropicReader(builder)
        for chunk in chunks:
            for event in parser.feed(chunk):
                list(reader.take_event(orjson.loads(event.data)))
        assert reader.ended
        return generation(builder)

    assert made(cut(data, places)) == made([data])


# No database keeps NUL, so no reply does.
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1).filter(str.strip)
WORDS = st.text("abcXYZ019_-", min_size=1, max_size=20)
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=9))
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(Reasoning, TEXTS, WORDS),
    st.builds(ToolCall, WORDS, WORDS, ARGUMENTS.map(lambda made: orjson.dumps(made).decode())),
)


def with_results(parts: list[Part]) -> list[Message]:
    calls = [ToolResult(part.id, [Text("ok")]) for part in parts if isinstance(part, ToolCall)]
    return [user("x"), Message(Role.ASSISTANT, parts), Message(Role.TOOL, calls) if calls else user("y")]


@settings(max_examples=80, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=6, unique_by=lambda part: getattr(part, "id", id(part))))
def test_what_is_sent_and_read_again_loses_nothing(parts: list[Part]) -> None:
    asked = request(*with_results(parts))
    converse = orjson.loads(body_of(asked, model(CLAUDE)))["messages"][1]["content"]
    builder = ReplyBuilder()
    list(Reader(builder).take_whole({"output": {"message": {"content": converse}}, "stopReason": "end_turn"}))
    assert list(generation(builder).message.parts) == parts

    messages = orjson.loads(anthropic_body(asked, model("anthropic/claude-haiku-4-5"), stream=False))["messages"]
    builder = ReplyBuilder()
    AnthropicReader(builder).take_whole({"content": messages[1]["content"], "stop_reason": "end_turn"})
    assert list(generation(builder).message.parts) == parts


@pytest.mark.parametrize("place", [0, 9, 30, -1])
def test_a_frame_that_was_damaged(place: int) -> None:
    damaged = bytearray(bedrock_wire.event("messageStop", {"stopReason": "end_turn"}))
    damaged[place] ^= 0x01
    with pytest.raises(ValueError, match=r"[Cc]hecksum|length|a frame of"):
        EventStreamParser().feed(bytes(damaged) * 2)


def test_errors_of_the_stream_itself() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "Ouch."}
    assert EventStreamParser().feed(bedrock_wire.frame(headers, b"")) == [Frame("error", "InternalError", b"Ouch.")]
    (frame,) = EventStreamParser().feed(bedrock_wire.exception("throttlingException", "Slow."))
    assert (frame.kind, frame.name) == ("exception", "throttlingException")
    assert (status_of(frame.name), status_of("somethingNew")) == (429, 500)


def test_calls_that_may_not_be_made_are_left_out() -> None:
    data = b"".join(bedrock_wire.message(Reply(text="So.", calls=CALLS), SEEN, 1, script.Usage(1, 1)).frames or ())
    builder = ReplyBuilder()
    read(EventStreamParser().feed(data), Reader(builder, may_call=False))
    made = generation(builder)
    assert list(made.message.parts) == [Text("So.")]
    assert made.finish_reason is FinishReason.STOP


def test_the_reply_by_a_call_is_text() -> None:
    called = Reply(calls=(script.ToolCall("reply", {"a": 1}),))
    data = b"".join(bedrock_wire.message(called, SEEN, 1, script.Usage(1, 1)).frames or ())
    builder = ReplyBuilder()
    read(EventStreamParser().feed(data), Reader(builder, reply_tool="reply"))
    made = generation(builder)
    assert list(made.message.parts) == [Text('{"a":1}')]
    assert made.finish_reason is FinishReason.STOP


def test_cited_text_is_text() -> None:
    content: list[Any] = [{"citationsContent": {"content": [{"text": "As said."}], "citations": [{"title": "t"}]}}]
    builder = ReplyBuilder()
    list(Reader(builder).take_whole({"output": {"message": {"content": content}}, "stopReason": "end_turn"}))
    assert list(generation(builder).message.parts) == [Text("As said.")]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Input is too long for requested model.", "context_length_exceeded"),
        ("Input Tokens Exceeded: Number of input tokens exceeds maximum length.", "context_length_exceeded"),
        ("The provided model identifier is invalid.", "model_not_found"),
        ("Too many tokens per day, please wait before trying again.", "insufficient_quota"),
        ("Malformed input request.", ""),
    ],
)
def test_refusals(message: str, code: str) -> None:
    assert read_refusal(400, {"message": message}).code == code
