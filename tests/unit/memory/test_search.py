"""Fusion by rank, and where a search looks."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.ranking import depth
from services.memory.core.ranking.search import RankedPassage, archive_lexeme, fuse, scope_lexemes, tsquery

ARCHIVE = UUID(int=1)


def ranking(*numbers: int) -> list[RankedPassage]:
    """Passages by number, best first."""
    return [RankedPassage(ARCHIVE, UUID(int=number), 1 / (1 + place)) for place, number in enumerate(numbers)]


def test_what_both_lists_have_comes_first() -> None:
    fused = fuse([ranking(1, 2, 3)], ranking(9, 3), 10)
    assert [one.passage_id.int for one in fused] == [3, 1, 9, 2]
    assert fused[0].score == pytest.approx(1 / 63 + 1 / 62)
    assert (fused[0].vector, fused[0].text) == (1 / 3, 1 / 2)
    assert (fused[1].text, fused[2].vector) == (None, None)


def test_every_model_has_a_list_of_its_own() -> None:
    fused = fuse([ranking(1, 2), ranking(3, 4)], ranking(4, 1), 3)
    assert [one.passage_id.int for one in fused] == [1, 4, 3]


def test_equal_numbers_in_different_archives_are_different_passages() -> None:
    other = [RankedPassage(UUID(int=2), UUID(int=1), 0.5)]
    assert len(fuse([ranking(1)], other, 10)) == 2


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True), st.integers(1, 40))
def test_fusion_loses_nothing_and_is_sorted(vectors: list[int], texts: list[int], top_k: int) -> None:
    fused = fuse([ranking(*vectors)], ranking(*texts), top_k)
    assert len(fused) == min(top_k, len({*vectors, *texts}))
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)
    assert fuse([ranking(*vectors)], [], 99) == fuse([ranking(*vectors)], ranking(), 99)


def test_depth_leaves_room_for_fusion() -> None:
    assert (depth(1), depth(5), depth(100)) == (50, 50, 200)


def test_a_query_looks_within_its_scope() -> None:
    assert archive_lexeme(ARCHIVE) == "@00000000000000000000000000000001"
    assert scope_lexemes(UUID(int=9), None) == ["@@00000000000000000000000000000009"]
    query = tsquery(scope_lexemes(UUID(int=9), [ARCHIVE, UUID(int=2)]), "('a' | 'b')")
    assert query == f"('@{ARCHIVE.hex}' | '@{UUID(int=2).hex}') & ('a' | 'b')"
