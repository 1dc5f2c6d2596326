"""Which statement finds the nearest vectors: a table of sizes."""

from __future__ import annotations

import pytest

from services.memory.core.ranking.vector_choice import VectorPlan, candidates, choose_plan, count_limit

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("passages", "indexed", "dimensions", "chosen", "expected"),
    [
        # Few are read, whatever there is.
        (0, 0, 384, None, VectorPlan.READ),
        (10_000, 10_000, 384, None, VectorPlan.READ),
        (10_000, MILLION, 384, 3, VectorPlan.READ),
        # Without an index all are read, unless a filter leaves few.
        (MILLION, 0, 384, None, VectorPlan.READ),
        (MILLION, 0, 384, 1_000, VectorPlan.FETCH),
        (MILLION, 0, 384, 200_000, VectorPlan.READ),
        # A tenant that holds most of what the index holds.
        (10_001, 10_001, 384, None, VectorPlan.INDEX),
        (99_000, 100_000, 1_536, None, VectorPlan.INDEX),
        (990_000, MILLION, 384, None, VectorPlan.INDEX),
        # Long vectors take longer to read.
        (8_000, 8_000, 1_536, None, VectorPlan.INDEX),
        (8_000, 8_000, 384, None, VectorPlan.READ),
        # Among many of others the index would visit too many: one in 300, one in 50, but not one in five.
        (30_000, 10 * MILLION, 384, None, VectorPlan.READ),
        (20_000, MILLION, 384, None, VectorPlan.READ),
        (200_000, MILLION, 384, None, VectorPlan.INDEX),
        # What a filter leaves is fetched while it is few: the more in the index, the more visits it saves.
        (100_000, 100_000, 384, 0, VectorPlan.FETCH),
        (100_000, 100_000, 384, 5_000, VectorPlan.FETCH),
        (100_000, 100_000, 384, 20_000, VectorPlan.INDEX),
        (MILLION, MILLION, 384, 20_000, VectorPlan.FETCH),
        (MILLION, MILLION, 384, 100_000, VectorPlan.INDEX),
    ],
)
def test_the_way(passages: int, indexed: int, dimensions: int, chosen: int | None, expected: VectorPlan) -> None:
    assert choose_plan(passages, indexed=indexed, limit=50, dimensions=dimensions, selected=chosen) is expected


def test_what_is_counted_up_to_the_bound_is_decided_as_if_it_were_known() -> None:
    bound = count_limit(MILLION, indexed=MILLION, limit=50)
    ways = {
        choose_plan(MILLION, indexed=MILLION, limit=50, dimensions=384, selected=n) for n in (bound, bound + 1, 500_000)
    }
    assert ways == {VectorPlan.INDEX}
    assert choose_plan(MILLION, indexed=MILLION, limit=50, dimensions=384, selected=bound - 1) is VectorPlan.FETCH


@pytest.mark.parametrize(("limit", "expected"), [(1, 150), (50, 150), (200, 400), (2_000, 1_000)])
def test_candidates(limit: int, expected: int) -> None:
    assert candidates(limit) == expected
