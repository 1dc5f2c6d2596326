"""Texts before which a reply ends, in streams and whole."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Message,
    Part,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.stops import StopFilter, cut, stop_settings

CALL = ToolCall("1", "ls", "{}")


def reply(*parts: Part) -> Generation:
    return Generation(Message(Role.ASSISTANT, parts), FinishReason.LENGTH, Usage(1, 1))


@pytest.mark.parametrize(
    ("parts", "stops", "kept"),
    [
        ([Text("one END two")], ["END"], [Text("one ")]),
        ([Text("one END two")], ["two", "END"], [Text("one ")]),
        ([Text("END")], ["END"], []),
        ([Text("one"), CALL], ["END"], [Text("one"), CALL]),
        ([Text("one END"), CALL], ["END"], [Text("one ")]),
        ([CALL, Text("END")], ["END"], [CALL]),
        ([Text("a", "signed"), Text("b END", "signed")], ["END"], [Text("a", "signed"), Text("b ")]),
    ],
)
def test_a_reply_ends_before_a_stop(parts: Sequence[Part], stops: Sequence[str], kept: Sequence[Part]) -> None:
    generation = cut(reply(*parts), stops)
    assert list(generation.message.parts) == kept
    assert (generation.finish_reason is FinishReason.STOP) == (kept != parts)


def passed(events: Sequence[Event], stops: Sequence[str]) -> list[Event]:
    stopped = StopFilter(stops)
    return [passing for event in events for passing in stopped.passed(event)]


@given(st.lists(st.text("abE", max_size=4), max_size=8), st.lists(st.text("abE", min_size=1, max_size=3), min_size=1))
def test_a_stream_has_the_text_of_the_whole(pieces: list[str], stops: list[str]) -> None:
    whole = reply(Text("".join(pieces)))
    *deltas, last = passed([*(TextDelta(0, piece) for piece in pieces), Completed(whole)], stops)
    assert isinstance(last, Completed)
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert said == "".join(part.text for part in last.generation.message.parts if isinstance(part, Text))


def test_what_may_begin_a_stop_is_held_back_until_something_else_comes() -> None:
    call = ToolCallDelta(1, "1", "ls", "{}")
    kept = [TextDelta(0, "one "), TextDelta(0, "EN"), call]
    assert passed([TextDelta(0, "one E"), TextDelta(0, "N"), call], ["END"]) == kept
    assert passed([TextDelta(0, "one E"), TextDelta(0, "ND two"), call], ["END"]) == [TextDelta(0, "one ")]


@pytest.mark.parametrize(
    ("stops", "told"),
    [
        (["END"], True),
        (["a", "b", "c", "d"], True),
        (["a", "b", "c", "d", "e"], False),
        (["END", "\n"], False),
        ([], False),
    ],
)
def test_providers_are_told_what_all_of_them_take(stops: list[str], told: bool) -> None:
    assert stop_settings(stops) == ({"stop": stops, "stop_sequences": stops} if told else {})
