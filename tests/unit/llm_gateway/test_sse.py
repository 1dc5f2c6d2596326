"""The parser of server-sent events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.sse import SseEvent, SseParser

STREAM = (
    ": a comment\n\n"
    'event: first\ndata: {"a": 1}\nid: 7\n\n'
    "data: one\ndata:two\ndata\n\n"
    "retry: 10\n\n"
    "data: grüße ☃\n\n"
    "data: [DONE]\n\n"
).encode()
EXPECTED = [
    SseEvent("first", b'{"a": 1}'),
    SseEvent("", b"one\ntwo\n"),
    SseEvent("", "grüße ☃".encode()),
    SseEvent("", b"[DONE]"),
]


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@given(st.lists(st.integers(0, len(STREAM)), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_chunks_may_end_anywhere(cuts: list[int], line_end: bytes) -> None:
    stream = STREAM.replace(b"\n", line_end)
    bounds = [0, *sorted(cuts), len(stream)]
    assert parsed(*(stream[a:b] for a, b in pairwise(bounds))) == EXPECTED


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r", b"\r\n"])
def test_the_last_blank_line_may_be_missing(tail: bytes) -> None:
    assert parsed(b"data: a\n\ndata: [DONE]" + tail) == [SseEvent("", b"a"), SseEvent("", b"[DONE]")]


def test_an_event_without_data_is_none() -> None:
    assert parsed(b"event: ping\n\ndata: x\n\n") == [SseEvent("", b"x")]
    assert parsed(b"\n\n\n: only comments\n\n") == []
