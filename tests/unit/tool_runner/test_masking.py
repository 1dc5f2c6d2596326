"""Secrets in what a call says."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tool_runner.core.masking import Mask
from services.tool_runner.sandbox_configs.model import MASK

KEY = 'sk-"A/+é\n'
SMALL = st.text("ab*", max_size=60)
SECRETS = st.lists(st.text("ab*", min_size=6, max_size=9), max_size=4)
LONG = st.integers(129, 140).flatmap(lambda size: st.text("ab", min_size=size, max_size=size))


def plainly(patterns: frozenset[str], text: str) -> str:
    """By looking at each place for each pattern."""
    found = sorted(
        (begin, begin + len(pattern))
        for pattern in patterns
        for begin in range(len(text))
        if text.startswith(pattern, begin)
    )
    places: list[tuple[int, int]] = []
    for begin, end in found:
        if places and begin < places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((begin, end))
    for begin, end in reversed(places):
        text = text[:begin] + MASK + text[end:]
    return text


def in_pieces(mask: Mask, text: str, cuts: list[int]) -> str:
    stream, edges = mask.stream(), sorted(cut % (len(text) + 1) for cut in cuts)
    pieces = [text[begin:end] for begin, end in zip([0, *edges], [*edges, len(text)], strict=True)]
    return "".join(map(stream.feed, pieces)) + stream.finish()


@given(SECRETS, SMALL)
def test_every_secret_is_hidden_and_nothing_else(secrets: list[str], text: str) -> None:
    mask = Mask(secrets)
    assert mask.text(text) == plainly(mask.patterns, text)


@given(SECRETS, LONG, SMALL, st.lists(st.integers(0, 500), max_size=6), st.integers(0, 140))
def test_pieces_say_what_the_whole_says(secrets: list[str], long: str, text: str, cuts: list[int], shown: int) -> None:
    mask = Mask([*secrets, long])
    text = text + long[:shown] + text + long + "a"
    assert in_pieces(mask, text, cuts) == in_pieces(mask, text, list(range(len(text)))) == mask.text(text)


@given(st.text(min_size=6, max_size=300), st.text("xyz ", max_size=9))
def test_a_secret_is_not_left_in_any_form(secret: str, around: str) -> None:
    mask = Mask([secret])
    for form in (secret, json.dumps(secret)[1:-1], quote_plus(secret), repr(secret)[1:-1]):
        assert form not in mask.text(f"{around}{form}{around}").replace(MASK, "\x00")
    assert mask.text(base64.b64encode(secret.encode()).decode()) == MASK


@pytest.mark.parametrize(
    "form",
    [KEY, json.dumps(KEY), json.dumps(KEY, ensure_ascii=False), quote(KEY), quote(KEY, safe=""), quote_plus(KEY)],
)
def test_forms(form: str) -> None:
    assert Mask([KEY]).text(f"<{form}>").replace('"', "") == f"<{MASK}>"


@pytest.mark.parametrize("before", ["", "u", "us", "use"])
def test_a_secret_within_base64(before: str) -> None:
    said = base64.b64encode(f"{before}:{'hunter2-and-more'}:".encode()).decode()
    hidden = Mask(["hunter2-and-more"]).text(said)
    assert MASK in hidden
    assert len(hidden) <= len(MASK) + 14


def test_what_is_held_back_is_no_more_than_a_beginning() -> None:
    stream = Mask(["secret-value"]).stream()
    assert [stream.feed(piece) for piece in ("a line\n", "sec", "urity ", "secret-valu", "e!", "s")] == [
        "a line\n",
        "",
        "security ",
        "",
        f"{MASK}!",
        "",
    ]
    assert stream.finish() == "s"


def test_a_last_line_break_does_not_show_the_rest() -> None:
    mask = Mask(["secret-value\n", "  12345  "])
    assert mask.text("key=secret-value, secret-value\n12345") == f"key={MASK}, {MASK}12345"


def test_short_values_are_shown_and_nothing_is_nothing() -> None:
    assert Mask(["12345", ""]).text("12345") == "12345"
    assert Mask([]).text("secret") == "secret"
    assert Mask(["123456"]).text("0123456712345") == f"0{MASK}712345"


def test_a_long_secret_is_hidden_to_its_end() -> None:
    key = "".join(f"{number}." for number in range(2_000))
    mask = Mask([key])
    assert mask.text(f"<{key}>") == f"<{MASK}>"
    assert mask.text(f"<{key[:500]}>") == f"<{MASK}>"
    assert mask.text(key[:127]) == key[:127]


def test_a_hostile_text_takes_no_longer_than_another() -> None:
    mask = Mask([f"{'a' * 100}{number}" for number in range(200)] + ["a" * 60_000])
    begun = time.process_time()
    mask.text("a" * 200_000)
    stream = mask.stream()
    for _ in range(20_000):
        stream.feed("aaaaa")
    assert time.process_time() - begun < 5


def test_very_many_values_are_hidden_whole_at_a_bounded_price() -> None:
    values = [f"{number:04}" + "abcdefgh" * 125 for number in range(768)]
    mask = Mask.whole(values)
    assert len(mask.tree.depth) < 120_000
    assert mask.text(f"a {values[700]} b") == "a ******** b"


@pytest.mark.parametrize("form", [str, json.dumps, quote, lambda value: base64.b64encode(value.encode()).decode()])
def test_long_values_that_begin_alike_are_hidden_to_their_ends(form: Callable[[str], str]) -> None:
    """A value and its own other forms do, and keys of the same kind."""
    begin = "abcdefghijklmnopqrstuvwxyz" * 6
    values = [begin + "\nfirst, second line", begin + "\nother, somewhat longer second line"]
    for value in values:
        told = Mask(values).text(f"x {form(value)}")
        assert "second" not in told
        assert base64.b64encode(b"cond li").decode()[:8] not in told
        assert len(told) < 40
