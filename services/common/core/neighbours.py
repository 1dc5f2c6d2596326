"""Context: what stands beside something found counts, too. Pure.

People answer a question a turn later, and a paragraph goes on in the next. So some of the score of what was found goes
to what was said just before and after it: passages of one archive, messages of one log and pieces of one file alike.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, TypeVar

from services.common.core.fusion import FusedScore

# The part of a score that goes to what is next to it; half of that to the next but one. See decision 106.
DEFAULT_SHARE = 0.5
NEIGHBOUR_STEPS = 2
_STEP_SHARE = 0.5
# By what others give it nothing has more than this part of the best of their scores: it stands below other hits.
MOST_LIFTED = 0.7
# Neighbours of the first so many count: those of others are nearer to what fits badly, and finding them takes time.
_MOST_GIVERS = 20
# What lies further apart in time was said on another occasion.
LONGEST_GAP = timedelta(minutes=30)
# What an answer can bring along, before and after each hit.
MOST_CONTEXT = 10

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Neighbour(Generic[Key]):
    """`key` stands `distance` steps after `of`, or before it where that is negative."""

    of: Key
    key: Key
    distance: int


def givers(fused: Sequence[FusedScore[Key]]) -> list[Key]:
    """Returns those whose neighbours count, of an order by scores."""
    return [one.key for one in fused[:_MOST_GIVERS] if one.score > 0]


def add_neighbours(
    fused: Sequence[FusedScore[Key]], neighbours: Iterable[Neighbour[Key]], share: float
) -> list[FusedScore[Key]]:
    """Returns the order in which everything also has the share of its neighbours' scores, with neighbours that no
    search found.
    """
    scores = {one.key: one.score for one in fused}
    given: dict[Key, float] = {}
    most: dict[Key, float] = {}
    for one in neighbours:
        score = scores[one.of]
        given[one.key] = given.get(one.key, 0.0) + share * _STEP_SHARE ** (abs(one.distance) - 1) * score
        most[one.key] = max(most.get(one.key, 0.0), MOST_LIFTED * score)
    lifted = {key: _lifted(scores.get(key, 0.0), more, most[key]) for key, more in given.items()}
    ranked = [replace(one, score=lifted[one.key]) if one.key in lifted else one for one in fused]
    ranked += [FusedScore(key, score, None, None) for key, score in lifted.items() if key not in scores]
    return sorted(ranked, key=lambda one: (-one.score, -(one.vector or 0.0)))


def _lifted(score: float, more: float, most: float) -> float:
    return max(score, min(score + more, most))


def contexts(neighbours: Iterable[Neighbour[Key]]) -> Mapping[Key, Sequence[Neighbour[Key]]]:
    """Returns the neighbours of each, in their order."""
    by_key: dict[Key, list[Neighbour[Key]]] = {}
    for one in sorted(neighbours, key=lambda one: one.distance):
        by_key.setdefault(one.of, []).append(one)
    return by_key
