"""Thoughts in the text of replies, however the text is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.llm_gateway.core.chat import Delta, FinishReason, Part, Reasoning, ReasoningDelta, Text, TextDelta
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.shared.text_thoughts import AUTO, OFF, OPEN, TextHabits
from tests.unit.llm_gateway.builders import request


def read(
    *pieces: str, habits: TextHabits | None = None, finish: FinishReason = FinishReason.STOP
) -> tuple[list[Part], list[Delta]]:
    builder = ReplyBuilder()
    builder.finish = finish
    text = (habits or TextHabits(AUTO)).reader(builder, "m")
    deltas = [delta for piece in pieces for delta in text.add(piece)] + list(text.end())
    return list(builder.generation(request(), "p", 1).message.parts), deltas


TEXTS: dict[str, list[Part]] = {
    "add</think>\n\n42": [Reasoning("add"), Text("42")],
    "add</think>42": [Reasoning("add"), Text("42")],
    "add</think>": [Reasoning("add")],
    "</think>\n\n42": [Text("42")],
    "\n</think>\n\n42": [Text("42")],
    "<think>add</think>\n\n42": [Reasoning("add"), Text("42")],
    " <think>\nab\n</think>\nc  ": [Reasoning("ab"), Text("c  ")],
    "<think></think>\n\n42": [Text("42")],
    "<think>cut off": [Reasoning("cut off")],
    "<thinking>a</thinking>b": [Reasoning("a"), Text("b")],
    "<thought>a</thought>b": [Reasoning("a"), Text("b")],
    "[THINK]a[/THINK]b": [Reasoning("a"), Text("b")],
    "one </think>\n\ntwo </think>\n\nthree": [Reasoning("one"), Text("two </think>\n\nthree")],
    # What speaks of tags is text.
    "Use <think>x</think> so": [Text("Use <think>x</think> so")],
    "Use <think>x</think>\n\nso": [Text("Use <think>x</think>\n\nso")],
    "The `</think>` tag": [Text("The `</think>` tag")],
    "the </think> tag ends": [Text("the </think> tag ends")],
    "<thi": [Text("<thi")],
    "x < y </thin": [Text("x < y </thin")],
    "\n\nHello": [Text("\n\nHello")],
    "": [],
}


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=30, derandomize=True, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_texts(text: str, sizes: list[int]) -> None:
    pieces, rest, number = [], text, 0
    while rest:
        size = sizes[number % len(sizes)]
        pieces.append(rest[:size])
        rest, number = rest[size:], number + 1
    for habits in (TextHabits(AUTO), TextHabits(OPEN)):
        assert read(*pieces, habits=habits)[0] == TEXTS[text]


def test_the_next_reply_is_streamed_as_thoughts() -> None:
    habits = TextHabits(AUTO)
    pieces = ["ad", "d</th", "ink>\n", "\n4", "2"]
    parts, first = read(*pieces, habits=habits)
    assert first == [TextDelta(0, "ad"), TextDelta(0, "d"), TextDelta(1, "4"), TextDelta(1, "2")]
    again, second = read(*pieces, habits=habits)
    assert second == [ReasoningDelta(0, "ad"), ReasoningDelta(0, "d"), TextDelta(1, "4"), TextDelta(1, "2")]
    assert parts == again == [Reasoning("add"), Text("42")]
    assert read(*pieces, habits=TextHabits(OPEN))[1] == second


def test_whoever_did_not_think_has_answered_unless_it_was_cut_off() -> None:
    assert read("Hi", habits=TextHabits(OPEN))[0] == [Text("Hi")]
    assert read("Hm", habits=TextHabits(OPEN), finish=FinishReason.LENGTH)[0] == [Reasoning("Hm")]


def test_it_can_be_turned_off() -> None:
    assert read("<think>a</think>b", habits=TextHabits(OFF))[0] == [Text("<think>a</think>b")]


def test_thoughts_in_a_field_of_their_own_leave_the_text_alone() -> None:
    builder = ReplyBuilder()
    text = TextHabits(AUTO).reader(builder, "m")
    text.leave()
    assert [*text.add("<think>a</think>b"), *text.end()] == [TextDelta(0, "<think>a</think>b")]
