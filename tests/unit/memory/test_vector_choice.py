"""Which statement finds the nearest vectors: a table of sizes."""

from __future__ import annotations

import pytest

from services.memory.core.ranking.vector_choice import Way, candidates, way, worth_counting

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("passages", "indexed", "dimensions", "chosen", "expected"),
    [
        # Few are read, whatever there is.
        (0, 0, 384, None, Way.READ),
        (10_000, 10_000, 384, None, Way.READ),
        (10_000, MILLION, 384, 3, Way.READ),
        # Without an index all are read, unless a filter leaves few.
        (MILLION, 0, 384, None, Way.READ),
        (MILLION, 0, 384, 1_000, Way.FETCH),
        (MILLION, 0, 384, 200_000, Way.READ),
        # A tenant that holds most of what the index holds.
        (10_001, 10_001, 384, None, Way.INDEX),
        (99_000, 100_000, 1_536, None, Way.INDEX),
        (990_000, MILLION, 384, None, Way.INDEX),
        # Long vectors take longer to read.
        (8_000, 8_000, 1_536, None, Way.INDEX),
        (8_000, 8_000, 384, None, Way.READ),
        # Among many of others the index would visit too many: one in 300, one in 50, but not one in five.
        (30_000, 10 * MILLION, 384, None, Way.READ),
        (20_000, MILLION, 384, None, Way.READ),
        (200_000, MILLION, 384, None, Way.INDEX),
        # What a filter leaves is fetched while it is few: the more in the index, the more visits it saves.
        (100_000, 100_000, 384, 0, Way.FETCH),
        (100_000, 100_000, 384, 5_000, Way.FETCH),
        (100_000, 100_000, 384, 20_000, Way.INDEX),
        (MILLION, MILLION, 384, 20_000, Way.FETCH),
        (MILLION, MILLION, 384, 100_000, Way.INDEX),
    ],
)
def test_the_way(passages: int, indexed: int, dimensions: int, chosen: int | None, expected: Way) -> None:
    assert way(passages, indexed=indexed, limit=50, dimensions=dimensions, chosen=chosen) is expected


def test_what_is_counted_up_to_the_bound_is_decided_as_if_it_were_known() -> None:
    bound = worth_counting(MILLION, indexed=MILLION, limit=50)
    ways = {way(MILLION, indexed=MILLION, limit=50, dimensions=384, chosen=n) for n in (bound, bound + 1, 500_000)}
    assert ways == {Way.INDEX}
    assert way(MILLION, indexed=MILLION, limit=50, dimensions=384, chosen=bound - 1) is Way.FETCH


@pytest.mark.parametrize(("limit", "expected"), [(1, 150), (50, 150), (200, 400), (2_000, 1_000)])
def test_candidates(limit: int, expected: int) -> None:
    assert candidates(limit) == expected
