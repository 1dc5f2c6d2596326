"""The scores of each kind of search, and where it looks."""

from uuid import UUID

from services.common.core.fusion import FusedScore
from services.common.core.ranking import depth
from services.memory.core.ranking.search import (
    RankedPassage,
    VectorRanking,
    archive_lexeme,
    fuse,
    scope_lexemes,
    tsquery,
)
from services.memory.passages.model import SearchMode

ARCHIVE = UUID(int=1)


def ranking(*numbers: int) -> list[RankedPassage]:
    """Passages by number, best first."""
    return [RankedPassage(ARCHIVE, UUID(int=number), 1 / (1 + place)) for place, number in enumerate(numbers)]


def test_each_kind_of_search_has_its_scores() -> None:
    vectors, texts = [VectorRanking(ranking(1, 2, 3), 1.0)], ranking(9, 3)
    hybrid = fuse(vectors, texts, SearchMode.HYBRID)
    assert [(one.key[1].int, one.score) for one in hybrid][:3] == [(1, 0.5), (9, 0.5), (3, 0.25)]
    assert (hybrid[2].vector, hybrid[2].text) == (1 / 3, 1 / 2)
    assert fuse(vectors, [], SearchMode.VECTOR)[0] == FusedScore((ARCHIVE, UUID(int=1)), 1.0, 1.0, None)
    assert fuse([], texts, SearchMode.TEXT)[0] == FusedScore((ARCHIVE, UUID(int=9)), 1.0, None, 1.0)


def test_vectors_of_several_models_go_by_their_ranks() -> None:
    other = [RankedPassage(UUID(int=2), UUID(int=1), 0.5)]
    fused = fuse([VectorRanking(ranking(1, 2), 1.0), VectorRanking(other, 1.0)], [], SearchMode.VECTOR)
    assert [(one.key[0].int, one.score) for one in fused] == [(1, 1 / 61), (2, 1 / 61), (1, 1 / 62)]


def test_depth_leaves_room_for_fusion() -> None:
    assert (depth(1), depth(5), depth(100)) == (50, 50, 200)


def test_a_query_looks_within_its_scope() -> None:
    assert archive_lexeme(ARCHIVE) == "@00000000000000000000000000000001"
    assert scope_lexemes(UUID(int=9), None) == ["@@00000000000000000000000000000009"]
    query = tsquery(scope_lexemes(UUID(int=9), [ARCHIVE, UUID(int=2)]), "('a' | 'b')")
    assert query == f"('@{ARCHIVE.hex}' | '@{UUID(int=2).hex}') & ('a' | 'b')"
