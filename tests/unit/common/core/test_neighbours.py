"""What stands beside something found counts, too."""

import pytest

from services.common.core.fusion import FusedScore
from services.common.core.neighbours import Neighbour, add_neighbours, contexts, givers


def order(**scores: float) -> list[FusedScore[str]]:
    """An order by scores, in which no search is named."""
    return [FusedScore(key, score) for key, score in scores.items()]


def test_a_step_gives_the_share_and_two_steps_half_of_it() -> None:
    beside = [Neighbour("a", "b", 1), Neighbour("a", "c", 2), Neighbour("a", "d", -1)]
    found = {one.key: one.score for one in add_neighbours(order(a=0.8), beside, 0.5)}
    assert found == {"a": 0.8, "b": pytest.approx(0.4), "c": pytest.approx(0.2), "d": pytest.approx(0.4)}


def test_what_two_hits_enclose_has_something_of_both() -> None:
    beside = [Neighbour("a", "b", 1), Neighbour("c", "b", -1)]
    found = {one.key: one.score for one in add_neighbours(order(a=0.6, c=0.4), beside, 0.4)}
    assert found == {"a": 0.6, "b": pytest.approx(0.4), "c": 0.4}


def test_a_hit_beside_a_better_one_is_lifted_no_further_than_a_part_of_that() -> None:
    beside = [Neighbour("a", "b", 1), Neighbour("b", "a", -1), Neighbour("a", "c", -1), Neighbour("a", "d", 2)]
    found = {one.key: one.score for one in add_neighbours(order(a=1.0, b=0.8, c=0.3, d=0.1), beside, 0.5)}
    # One that has more itself keeps that.
    assert found == {"a": 1.0, "b": 0.8, "c": pytest.approx(0.7), "d": pytest.approx(0.35)}


def test_a_neighbour_that_no_search_found_passes_a_poor_hit() -> None:
    ranked = add_neighbours(order(a=0.9, z=0.1), [Neighbour("a", "b", 1)], 0.4)
    assert [one.key for one in ranked] == ["a", "b", "z"]
    assert (ranked[1].vector, ranked[1].text) == (None, None)


def test_a_neighbour_never_passes_the_hit_that_it_has_its_score_from() -> None:
    ranked = add_neighbours(order(a=0.5), [Neighbour("a", "b", 1), Neighbour("a", "c", -1)], 1.0)
    assert ranked[0].key == "a"


def test_what_words_cannot_tell_apart_stays_in_the_order_of_vectors() -> None:
    fused = [FusedScore("a", 0.0, 0.9), FusedScore("b", 0.0, 0.8)]
    assert givers(fused) == []
    assert [one.key for one in add_neighbours(fused, [], 0.4)] == ["a", "b"]


def test_the_first_twenty_give() -> None:
    assert givers([FusedScore(number, 1 / (1 + number)) for number in range(60)]) == list(range(20))


def test_context_is_in_order() -> None:
    found = contexts([Neighbour("a", "c", 1), Neighbour("a", "b", -1), Neighbour("x", "y", 2)])
    assert {key: [one.key for one in some] for key, some in found.items()} == {"a": ["b", "c"], "x": ["y"]}
