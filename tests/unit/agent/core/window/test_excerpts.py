"""Long texts in pieces, and what a search shows of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.window.excerpts import AROUND, OFTEN, excerpt, pieces

FILL = "lorem ipsum " * 10_000


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 50))
def test_pieces_are_the_text_and_none_is_too_long(text: str, most: int) -> None:
    found = list(pieces(text, most))
    assert "".join(found) == text
    assert all(len(piece) <= most for piece in found)


def test_no_word_is_cut_where_there_are_words() -> None:
    text = "heron otter beaver " * 1_000
    assert {word for piece in pieces(text, 100) for word in piece.split()} == {"heron", "otter", "beaver"}


def test_a_short_text_is_shown_as_it_is() -> None:
    assert excerpt("The heron.", [["heron"]], 10) == "The heron."


@pytest.mark.parametrize(("before", "after"), [(FILL, FILL), (f"İ{FILL}", FILL), (FILL, "")])
def test_a_word_anywhere_is_shown_with_what_is_around_it(before: str, after: str) -> None:
    text = f"{before}A Heron flew. {after}"
    shown = excerpt(text, [["heron"]], 2_000)
    assert "A Heron flew." in shown
    assert shown.startswith("\n[... 1")
    assert len(shown) < 2 * AROUND + 200
    left = sum(int(marker.split()[0].replace(",", "")) for marker in shown.split("[... ")[1:])
    assert left + 2 * AROUND >= len(text) >= left + AROUND


def test_each_word_is_shown_before_one_is_shown_again() -> None:
    text = f"{f'heron {FILL}' * 9} beaver {FILL} xheron"
    shown = excerpt(text, [["heron", "beaver"], ["lorem"]], 5 * AROUND)
    assert "beaver" in shown
    assert 1 < shown.count("heron") <= OFTEN
    assert "xheron" not in shown


def test_neighbours_are_shown_together() -> None:
    shown = excerpt(f"{FILL}heron and otter{FILL}", [["otter"], ["heron"]], 2_000)
    assert "heron and otter" in shown
    assert shown.count("[...") == 2


def test_where_nothing_is_found_the_beginning_is_shown() -> None:
    shown = excerpt(FILL, [["heron"], []], 100)
    assert shown.startswith(FILL[:100])
    assert "left out here; search for words of theirs" in shown


@given(st.text(max_size=300), st.lists(st.text(max_size=3), max_size=4), st.integers(1, 100))
def test_whatever_is_looked_for_something_is_shown(text: str, words: list[str], most: int) -> None:
    shown = excerpt(text, [words], most)
    assert shown == text if len(text) <= most else "left out here" in shown
