"""Fusion by scores, and by ranks where scores cannot be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.fusion import (
    FusedScore,
    VectorScores,
    fuse_ranks,
    fuse_scores,
    prefer,
    reciprocal_ranks,
    rerank,
)

SCORES = st.dictionaries(st.integers(0, 30), st.integers(0, 2_000).map(lambda number: number / 100), max_size=20)


def best_first(scores: dict[int, float]) -> dict[int, float]:
    """The scores in the order in which a search gives them."""
    return dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))


def keys(fused: list[FusedScore[str]]) -> list[str]:
    """What was found, best first."""
    return [one.key for one in fused]


def test_normalised_scores_count_half_each() -> None:
    fused = fuse_scores([VectorScores({"a": 0.9, "b": 0.7, "c": 0.5})], {"d": 8.0, "c": 6.0})
    assert [(one.key, one.vector, one.text) for one in fused] == [
        ("a", 0.9, None),
        ("d", None, 8.0),
        ("c", 0.5, 6.0),
        ("b", 0.7, None),
    ]
    assert [one.score for one in fused] == pytest.approx([0.5, 0.5, 0.375, 0.25])


def test_words_count_as_far_as_they_cover_the_query() -> None:
    fused = fuse_scores([VectorScores({"a": 0.9, "b": 0.1})], {"c": 3.0, "b": 1.5}, whole=10.0)
    assert [(one.key, one.score) for one in fused] == [
        ("a", 0.5),
        ("c", pytest.approx(0.15)),
        ("b", pytest.approx(0.075)),
    ]
    assert [one.score for one in fuse_scores([], {"a": 12.0, "b": 6.0}, whole=10.0)] == [1.0, 0.5]


def test_scores_tell_more_than_ranks() -> None:
    """The best by words is far better than the next; by vectors all are alike, so their order counts little."""
    vectors = {"x": 0.503, "y": 0.502, "z": 0.501, "found": 0.500}
    assert keys(fuse_scores([VectorScores(vectors)], {"found": 9.0, "x": 1.0}))[0] == "found"
    assert [one.score for one in fuse_scores([VectorScores({"x": 0.3, "y": 0.3})], {})] == [0, 0]


def test_what_weighs_nothing_orders_what_words_cannot_tell_apart_and_what_they_do_not_find() -> None:
    vectors = VectorScores({"e": 0.9, "d": 0.8, "c": 0.7, "b": 0.1, "a": 0.05}, weight=0.0)
    fused = fuse_scores([vectors], {"a": 4.0, "b": 2.0, "c": 2.0})
    assert [(one.key, one.score) for one in fused] == [("a", 1), ("c", 0.5), ("b", 0.5), ("e", 0), ("d", 0)]


def test_every_model_is_normalised_by_itself_and_weighed() -> None:
    fused = fuse_scores(
        [VectorScores({"a": 0.99, "b": 0.5}), VectorScores({"c": 0.3, "d": 0.1}, weight=0.0)], {"d": 1.0}
    )
    assert [(one.key, one.score) for one in fused] == [("a", 0.5), ("d", 0.5), ("b", 0), ("c", 0)]


@given(SCORES, SCORES)
def test_fusion_loses_nothing_and_keeps_the_order_of_the_only_search(
    similar: dict[int, float], words: dict[int, float]
) -> None:
    vectors, text = VectorScores(best_first({key: score / 20 for key, score in similar.items()})), best_first(words)
    fused = fuse_scores([vectors], text)
    assert {one.key for one in fused} == {*similar, *words}
    assert all(0 <= one.score <= 1.000_001 for one in fused)
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)
    assert [one.key for one in fuse_scores([], text)] == list(text)
    silent = fuse_scores([VectorScores(vectors.scores, weight=0.0)], text)
    assert [one.text for one in silent if one.text] == [score for score in text.values() if score]


@given(SCORES, SCORES)
def test_what_is_better_by_both_stands_above(similar: dict[int, float], words: dict[int, float]) -> None:
    scores = {key: score / 20 for key, score in similar.items()}
    places = {
        one.key: place for place, one in enumerate(fuse_scores([VectorScores(best_first(scores))], best_first(words)))
    }
    for one in places:
        for other in places:
            if scores.get(one, -1) > scores.get(other, -1) + 0.001 and words.get(one, 0) > words.get(other, 0) + 0.001:
                assert places[one] < places[other]


def test_ranks_where_scores_cannot_be_compared() -> None:
    fused = fuse_ranks([VectorScores({"a": 0.9, "b": 0.8}), VectorScores({"c": 0.95})])
    assert [(one.key, one.score) for one in fused] == [("c", 1 / 61), ("a", 1 / 61), ("b", 1 / 62)]
    assert reciprocal_ranks([["a", "b"], ["b"], []]) == {
        "a": pytest.approx(1 / 61),
        "b": pytest.approx(1 / 62 + 1 / 61),
    }


def test_everything_has_the_prefer_its_scores_and_the_timely_half_as_much_again() -> None:
    everywhere = [FusedScore("a", 0.5), FusedScore("b", 0.4, 0.9)]
    then = [FusedScore("b", 0.5, 0.9), FusedScore("c", 0.2)]
    assert [(one.key, one.score) for one in prefer(everywhere, then)] == [
        ("b", 0.75),
        ("a", 0.5),
        ("c", pytest.approx(0.3)),
    ]


def test_what_a_reranker_judged_stands_above_all_else_in_its_order() -> None:
    fused = [FusedScore("a", 0.9), FusedScore("b", 0.8, 0.5), FusedScore("c", 0.3, None, 2.0), FusedScore("d", 0.1)]
    order = rerank(fused, {"a": 0.1, "b": 0.7})
    assert [one.key for one in order] == ["b", "a", "c", "d"]
    assert [one.score for one in order] == sorted((one.score for one in order), reverse=True)
    assert order[0].vector == 0.5
    assert rerank(fused, {}) == fused
