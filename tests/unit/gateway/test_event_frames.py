"""Frames that no client's idea of a line cuts in two."""

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.rest.event_frames import HEADERS, LineEndEscaper, escape_line_ends, frame

LINE_ENDS = "\x85\u2028\u2029"


@settings(derandomize=True, deadline=None)
@given(st.text(st.sampled_from('a\u2028\u2029\x85"\\\n\r\u00e2\u20ac\U0001f600'), max_size=20))
def test_whoever_splits_lines_finds_whole_events(text: str) -> None:
    made = frame({"content": text}, "error").decode()
    assert made.splitlines() == ["event: error", made.removeprefix("event: error\n").rstrip("\n"), ""]
    assert json.loads(made.split("data: ")[1]) == {"content": text}


@settings(derandomize=True, deadline=None)
@given(st.text(st.sampled_from("a\u2028\u2029\x85\u2026\u00c2\u00e9\u20ac"), max_size=20), st.integers(1, 4))
def test_a_stream_of_somebody_else_s(text: str, size: int) -> None:
    data = b"data: " + orjson.dumps({"content": text}) + b"\n\n"
    escaper = LineEndEscaper()
    sent = b"".join(escaper.feed(data[at : at + size]) for at in range(0, len(data), size)) + escaper.close()
    assert sent == escape_line_ends(data)
    assert not set(LINE_ENDS) & set(sent.decode())
    assert json.loads(sent[6:]) == {"content": text}


@pytest.mark.parametrize("word", ["no-cache", "no-transform"])
def test_proxies_keep_and_change_nothing(word: str) -> None:
    assert word in HEADERS["cache-control"]
