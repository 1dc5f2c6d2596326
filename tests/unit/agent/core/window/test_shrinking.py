"""Messages that are too large, made smaller."""

from dataclasses import replace

import pytest

from services.agent.core.messages import Call, Image, Message, Reasoning, RedactedReasoning, Return, Text, calls_of
from services.agent.core.window.shrinking import A_PICTURE, in_words, shrink
from tests.unit.agent.histories import answer, call, message, sound, tokens

LOAD = 1_000_000
PICTURE = Image("A" * 400, media_type="image/png")
THOUGHTS = (Reasoning("t" * 3_000, "s" * 600), RedactedReasoning("r" * 600))


def pair(calls: int, size: int) -> list[Message]:
    ids = [str(number) for number in range(calls)]
    asked = message(0, "assistant", *(replace(call(each), arguments=f'{{"x":"{"y" * size}"}}') for each in ids))
    return [asked, message(1, "tool", *(answer(each, "z" * size) for each in ids))]


def test_what_fits_stays_as_it_is() -> None:
    unit = [message(0, "user", Text("hi"), PICTURE)]
    assert shrink(unit, 1_600, LOAD) == unit


@pytest.mark.parametrize("calls", [1, 2, 7])
def test_calls_and_returns_give_way_together(calls: int) -> None:
    cut = shrink(pair(calls, 9_000), 2_000, LOAD)
    assert sound(cut)
    assert len(calls_of(cut[0])) == calls
    # All that there is room for is used, but for rounding and JSON.
    assert 1_500 < tokens(cut) <= 2_000


def test_short_texts_stay_when_a_long_one_is_cut() -> None:
    (cut,) = shrink([message(0, "user", Text("short"), Text("x" * 9_000))], 200, LOAD)
    assert cut.parts[0] == Text("short")
    assert cut.parts[1] != Text("x" * 9_000)


def test_a_text_that_is_cut_loses_its_signature() -> None:
    (cut,) = shrink([message(0, "assistant", Text("short", "one"), Text("x" * 9_000, "two"))], 200, LOAD)
    assert [part.signature for part in cut.parts if isinstance(part, Text)] == ["one", ""]


def test_texts_are_cut_before_pictures_and_thoughts_go() -> None:
    unit = [message(0, "assistant", *THOUGHTS, Text("x" * 9_000), PICTURE)]
    (cut,) = shrink(unit, 3_200, LOAD)
    assert cut.parts[:2] == THOUGHTS
    assert cut.parts[3] == PICTURE
    (cut,) = shrink(unit, 1_600, LOAD)
    assert cut.parts[:2] == THOUGHTS
    assert cut.parts[3] == A_PICTURE
    (cut,) = shrink(unit, 200, LOAD)
    assert [type(part) for part in cut.parts] == [Text, Text]


@pytest.mark.parametrize("unit", [pair(20, 900), [message(0, "assistant", *THOUGHTS)]])
def test_in_the_end_one_message_says_what_fits(unit: list[Message]) -> None:
    (said,) = shrink(unit, 100, LOAD)
    assert said.role == "user"
    assert tokens([said]) <= 100
    (text,) = said.parts
    assert isinstance(text, Text)
    assert text.text.startswith("[This is too large for the window")


def test_pictures_that_are_too_heavy_become_words() -> None:
    (cut,) = shrink([message(0, "user", Text("look"), PICTURE)], 9_000, 100)
    assert cut.parts == (Text("look"), A_PICTURE)


def test_pictures_in_returns_become_words() -> None:
    seen = Return("a", "look", "a cat", images=(PICTURE, PICTURE))
    words = Return("a", "look", f"a cat\n{A_PICTURE.text}\n{A_PICTURE.text}")
    assert in_words(message(0, "tool", seen)).parts == (words,)
    plain = message(0, "assistant", Call(id="a"))
    assert in_words(plain) is plain
