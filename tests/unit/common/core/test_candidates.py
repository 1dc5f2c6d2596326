"""The documents that a ranking by words looks at."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.candidates import Candidates, choose_candidates, rarest_words, weight, widen_candidates

TOTAL = 1_000_000


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        # All documents of a rare word.
        ({"rare": 1e-5}, Candidates((("rare",),), ())),
        # The common word alone would add nothing to be among the best.
        ({"rare": 1e-4, "common": 0.1}, Candidates((("rare",),), ())),
        # Too many have either; some have both.
        ({"a": 0.01, "b": 0.02}, Candidates((), (("a", "b"),))),
        # All of one word; those of both would be too many.
        ({"a": 0.0015, "b": 0.0016}, Candidates((("a",),), ())),
        # Pairs that few have; all three are among those.
        (
            {"a": 0.01, "b": 0.015, "c": 0.02},
            Candidates((), (("a", "b"), ("a", "c"), ("b", "c"))),
        ),
        # One common word, or too common ones: what is newest will do.
        ({"common": 0.1}, Candidates((), (("common",),), newest=True)),
        ({"common": 0.01}, Candidates((), (("common",),))),
        ({"a": 0.3, "b": 0.4}, Candidates((), (("a", "b"),), newest=True)),
    ],
)
def test_what_is_looked_at(shares: dict[str, float], expected: Candidates) -> None:
    assert choose_candidates(shares, TOTAL, limit=50, most=2_000) == expected


def test_words_of_which_all_documents_are_looked_at_are_counted() -> None:
    assert choose_candidates({"rare": 1e-5, "a": 0.01}, TOTAL, limit=50, most=2_000).whole == {"rare"}


@given(
    st.dictionaries(st.sampled_from("abcdefghij"), st.floats(1e-6, 0.9), min_size=1),
    st.integers(10, 200),
    st.integers(500, 5_000),
)
def test_they_are_few_and_none_twice(shares: dict[str, float], limit: int, most: int) -> None:
    found = choose_candidates(shares, TOTAL, limit=limit, most=most)
    sets = [set(words) for words in (*found.sure, *found.unsure)]
    assert sets
    assert not any(one < other for one in sets for other in sets)
    for words in found.sure:
        assert min(shares[word] for word in words) * TOTAL <= most
    wide = widen_candidates(shares, TOTAL, most=most)
    assert sum(shares[word] for [word] in wide.sure) * TOTAL <= most
    assert len(wide.sure) + len(wide.unsure) == len(shares) or wide.unsure


def test_widening_takes_the_rarest_words_that_fit_and_then_one_more() -> None:
    shares = {"a": 0.0005, "b": 0.001, "c": 0.01, "d": 0.1}
    assert widen_candidates(shares, TOTAL, most=2_000) == Candidates((("a",), ("b",)), (("c",),))
    assert widen_candidates({"d": 0.1}, TOTAL, most=2_000) == Candidates((), (("d",),), newest=True)
    assert widen_candidates({"a": 0.0005}, TOTAL, most=2_000) == Candidates((("a",),), ())


def test_weights_fall_with_the_share() -> None:
    assert weight(10 / TOTAL, TOTAL) == pytest.approx(log(1 + (TOTAL - 10 + 0.5) / 10.5))
    assert weight(0.1, TOTAL) > weight(0.2, TOTAL) > weight(1.0, TOTAL) > 0
    assert rarest_words({"a": 0.3, "b": 0.1, "c": 0.2}, 2) == ("b", "c")
