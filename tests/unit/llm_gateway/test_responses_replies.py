"""Replies of OpenAI's Responses as the neutral chat."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.calls.coalesce import join_deltas
from services.llm_gateway.core.chat import (
    Delta,
    FinishReason,
    Generation,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.vendors.responses.replies import Reader, read_refusal, status_of
from tests.fakes import responses_wire as wire
from tests.fakes import script
from tests.fakes.script import Reply, RequestView
from tests.unit.llm_gateway.builders import request, user

INCLUDE = {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
FULL = Reply(
    text="one two",
    reasoning="first thought\n\nsecond",
    redacted="opaque",
    calls=[script.ToolCall("roll", {"n": 6}), script.ToolCall("toss", {"ü": "ß"})],
    usage=script.Usage(10, 5, cached=4, cache_write=2, reasoning=3),
)
PARTS = [
    Reasoning("first thought\n\nsecond", "openai:rs_fake0:sig-of-the-fake"),
    RedactedReasoning("openai:rs_fake1:opaque"),
    Text("one two"),
    ToolCall("call_fake1_0", "roll", '{"n":6}'),
    ToolCall("call_fake1_1", "toss", '{"ü":"ß"}'),
]


def seen(*, stream: bool) -> RequestView:
    return RequestView("gpt-5", "user", "hi", 0, stream, (), {"model": "gpt-5", "input": "hi", **INCLUDE})


def events_of(reply: Reply) -> list[dict[str, Any]]:
    return list(wire.Made(reply, seen(stream=True), 1).events())


def read(events: Sequence[Mapping[str, Any]]) -> tuple[Reader, list[Delta]]:
    reader = Reader(ReplyBuilder(), "openai")
    return reader, [delta for event in events for delta in reader.take_event(event)]


def generation(reader: Reader) -> Generation:
    return reader.builder.generation(request(user("hi"), logprobs=True), "openai", 10)


def test_a_stream_and_a_whole_reply_say_the_same() -> None:
    reader, deltas = read(events_of(FULL))
    made = generation(reader)
    assert list(made.message.parts) == PARTS
    assert (made.finish_reason, made.provider_response_id, made.provider_model) == (
        FinishReason.TOOL_CALLS,
        "resp_fake1",
        "gpt-5",
    )
    assert made.usage == Usage(10, 5, cached_input_tokens=4, cache_write_tokens=2, reasoning_tokens=3)
    assert (reader.ended, reader.completed, reader.failure) == (True, True, None)
    thoughts = [delta for delta in join_deltas(deltas) if isinstance(delta, ReasoningDelta)]
    assert thoughts == [ReasoningDelta(0, "first thought\n\nsecond")]
    calls = [delta for delta in join_deltas(deltas) if isinstance(delta, ToolCallDelta)]
    assert calls == [
        ToolCallDelta(3, "call_fake1_0", "roll", '{"n":6}'),
        ToolCallDelta(4, "call_fake1_1", "toss", '{"ü":"ß"}'),
    ]
    tokens = [token["token"] for token in orjson.loads(made.logprobs_json)["content"]]
    assert tokens == ["one ", "two"]
    whole = Reader(ReplyBuilder(), "openai")
    whole.take_whole(wire.Made(FULL, seen(stream=False), 1).whole())
    assert generation(whole) == made


@given(st.data())
def test_any_cut_of_the_stream_gives_the_same_message(data: st.DataObject) -> None:
    planned = wire.response(FULL, seen(stream=True), 1)
    stream = b"".join(planned.frames or ())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    parser, reader = SseParser(), Reader(ReplyBuilder(), "openai")
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        for event in parser.feed(stream[start:stop]):
            for _ in reader.take_event(orjson.loads(event.data)):
                pass
    assert list(generation(reader).message.parts) == PARTS


@given(st.sets(st.sampled_from(["delta", "done", "added", "item_done"])))
def test_servers_that_leave_out_events_are_understood(missing: set[str]) -> None:
    """Deltas, the texts at their end, the beginnings of items, their ends: any may be missing."""
    ends = {"delta": ".delta", "done": ".done", "added": "output_item.added", "item_done": "output_item.done"}
    left = [event for event in events_of(FULL) if not any(_is(event, ends[one]) for one in missing)]
    reader, _ = read(left)
    assert sorted(map(repr, generation(reader).message.parts)) == sorted(map(repr, PARTS))


def _is(event: Mapping[str, Any], end: str) -> bool:
    kind: str = event["type"]
    if end == ".done":
        return kind.endswith(".done") and kind != "response.output_item.done"
    return kind.endswith(end)


def test_only_the_last_event() -> None:
    reader, deltas = read(events_of(FULL)[-1:])
    assert list(generation(reader).message.parts) == PARTS
    assert len(deltas) == 6


def test_a_refusal_is_what_the_model_says() -> None:
    reader, _ = read(events_of(Reply(refusal="I will not.")))
    assert list(generation(reader).message.parts) == [Text("I will not.")]


def test_raw_thoughts_of_open_models() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm hm"}]}
    reader, _ = read(
        [
            {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm "},
            {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm"},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
        ]
    )
    assert list(generation(reader).message.parts) == [Reasoning("hm hm")]


def test_the_phase_of_a_message_is_kept() -> None:
    item = {"type": "message", "phase": "commentary", "content": [{"type": "output_text", "text": "So."}]}
    reader, _ = read(
        [
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "So."},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed"}},
        ]
    )
    assert list(generation(reader).message.parts) == [Text("So.", "openai:commentary")]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("max_messages", FinishReason.UNKNOWN),
    ],
)
def test_incomplete_replies(reason: str, finish: FinishReason) -> None:
    events = events_of(Reply(text="one"))[:-1]
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    reader, _ = read([*events, {"type": "response.incomplete", "response": end}])
    assert generation(reader).finish_reason is finish
    assert (reader.ended, reader.completed) == (True, False)


@pytest.mark.parametrize(
    ("event", "status", "message"),
    [
        ({"type": "error", "code": "server_error", "message": "lost"}, 500, "lost"),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow down"}}, 429, "slow down"),
        ({"type": "error", "status": 403, "error": {"message": "no"}}, 403, "no"),
        ({"error": {"code": 404, "message": "no such model"}}, 404, "no such model"),
        ({"error": "overloaded"}, 500, "overloaded"),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "x"}},
            },
            400,
            "x",
        ),
        ({"type": "response.cancelled", "response": {"status": "cancelled"}}, 500, "the response is cancelled"),
    ],
)
def test_failures(event: dict[str, Any], status: int, message: str) -> None:
    reader, _ = read([*events_of(Reply(text="one"))[:3], event])
    assert reader.ended
    assert reader.failure is not None
    refusal = read_refusal(*reader.failure)
    assert (refusal.status, refusal.message) == (status, message)


def test_events_that_nobody_knows_add_nothing() -> None:
    events = [event for one in events_of(FULL) for event in (one, {"type": "response.web_search_call.searching"})]
    reader, _ = read([*events, {"type": "response.queued", "response": {"id": "other"}}, {}])
    assert list(generation(reader).message.parts) == PARTS


@pytest.mark.parametrize(
    ("code", "status"),
    [("context_length_exceeded", 400), ("image_too_large", 400), ("invalid_image", 400), ("429", 429), (None, 500)],
)
def test_statuses(code: str | None, status: int) -> None:
    assert status_of({"code": code}) == status
