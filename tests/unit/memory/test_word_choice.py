"""How much a search by words reads, and what samples say."""

import pytest

from services.memory.core.ranking.word_choice import count_before_filter, count_limit, most_candidates, most_selected
from services.memory.core.ranking.word_samples import Sample, fewest, is_old, unknown_share


def test_the_more_is_wanted_the_more_is_looked_at() -> None:
    assert most_candidates(50, filtered=False) == 2_000
    assert most_candidates(2_000, filtered=False) == 8_000
    assert most_candidates(50, filtered=True) > most_candidates(50, filtered=False)


def test_a_filter_is_counted_as_far_as_that_decides() -> None:
    assert (most_selected(100), most_selected(1_000_000)) == (100, 4_000)
    assert (count_limit(10_000), count_limit(1_000_000)) == (8_000, 50_000)


@pytest.mark.parametrize(("kept", "expected"), [(None, 50), (0, 50), (100_000, 50), (50_000, 100), (5_000, 1_000)])
def test_a_filter_takes_its_share_of_the_candidates(kept: int | None, expected: int) -> None:
    assert count_before_filter(50, 100_000, kept) == expected


def test_words_that_a_sample_keeps() -> None:
    """In large archives what is no chance, in small ones what is not rare."""
    assert fewest(Sample(1_000_000, 30_000)) == 3
    assert fewest(Sample(100_000, 30_000)) == 15
    assert fewest(Sample(1_000, 1_000)) == 50
    assert unknown_share([Sample(1_000_000, 30_000)]) == pytest.approx(1.5 / 30_000)
    assert unknown_share([Sample(1_000, 1_000), Sample(1_000, 1_000)]) == pytest.approx(0.025)
    assert unknown_share([]) == 0


@pytest.mark.parametrize(
    ("sample", "passages", "old"),
    [(None, 500, False), (None, 501, True), (Sample(1_000, 1_000), 1_250, False), (Sample(1_000, 1_000), 1_251, True)],
)
def test_when_to_take_a_sample(sample: Sample | None, passages: int, old: bool) -> None:
    assert is_old(sample, passages) is old
