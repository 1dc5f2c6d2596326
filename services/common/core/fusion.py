"""One order out of several rankings. Pure.

A hybrid search adds normalised scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval",
ACM TOIS 2023). BM25 has bounds: 0, and about what a text has in which every word of the query stands once. Its scores
are divided by that, so words count as far as they cover the query. Cosines have no bounds that models share: the worst
of a ranking counts 0 and the best 1, unless all are nearly equal, which tells nothing.

Where scores cannot be compared, ranks are: reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009) adds
1 / (60 + rank) over the rankings in which something stands.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

RRF_K = 60
# Similarities that lie closer together than this are noise, not an order: they count in proportion.
_LEAST_SPREAD = 0.15
_TIMELY = 1.5

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class VectorScores(Generic[Key]):
    """The similarities by one embedding model, best first, and their weight beside that of words, which is 1.

    With a weight of 0 they order only what words cannot tell apart, and what words do not find.
    """

    scores: Mapping[Key, float]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class FusedScore(Generic[Key]):
    """The place of a key: its fused score, and those of the searches that found it."""

    key: Key
    score: float
    vector: float | None = None
    text: float | None = None


def fuse_scores(
    vectors: Sequence[VectorScores[Key]], text: Mapping[Key, float], whole: float = 0.0
) -> list[FusedScore[Key]]:
    """Returns one order by weighted means of normalised scores, 0 to 1; what a search did not find has 0 there.

    vectors: a ranking for each embedding model, which have no key in common. text: by BM25, best first. whole: the
    score of a text of usual length in which every word of the query stands once; 0 for the best that was found.
    """
    heaviest = max((one.weight for one in vectors), default=0.0)
    totals = {key: share / (1 + heaviest) for key, share in _shares_of_whole(text, whole).items()}
    for one in vectors:
        for key, share in _shares_of_spread(one.scores).items():
            totals[key] = totals.get(key, 0.0) + one.weight * share / (1 + heaviest)
    return _ordered(totals, vectors, text)


def fuse_ranks(vectors: Sequence[VectorScores[Key]]) -> list[FusedScore[Key]]:
    """Returns one order of rankings by several models, whose similarities cannot be compared: by reciprocal rank."""
    return _ordered(reciprocal_ranks(one.scores for one in vectors), vectors, {})


def prefer(fused: Iterable[FusedScore[Key]], *timely: Iterable[FusedScore[Key]]) -> list[FusedScore[Key]]:
    """Returns one order in which everything has its best score; those of the timely count half as much again."""
    best: dict[Key, FusedScore[Key]] = {}
    preferred = (replace(one, score=_TIMELY * one.score) for one in chain.from_iterable(timely))
    for one in chain(fused, preferred):
        if one.key not in best or one.score > best[one.key].score:
            best[one.key] = one
    return sorted(best.values(), key=lambda one: (-one.score, -(one.vector or 0.0)))


def rerank(fused: Sequence[FusedScore[Key]], scores: Mapping[Key, float]) -> list[FusedScore[Key]]:
    """Returns the order in which those that have a score by a reranker stand before all others, by that."""
    others = [one for one in fused if one.key not in scores]
    highest = max((one.score for one in others), default=0.0)
    judged = [replace(one, score=highest + scores[one.key]) for one in fused if one.key in scores]
    return sorted(judged, key=lambda one: -one.score) + others


def reciprocal_ranks(rankings: Iterable[Iterable[Key]]) -> dict[Key, float]:
    """Returns the sum of 1 / (60 + rank) of everything that stands in a list; each list is best first, without
    duplicates.
    """
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
    return scores


def _ordered(
    totals: Mapping[Key, float], vectors: Sequence[VectorScores[Key]], text: Mapping[Key, float]
) -> list[FusedScore[Key]]:
    """Returns the best first. Ties go to the better vector, then to the one that its search has first."""
    by_vector = {key: score for one in vectors for key, score in one.scores.items()}
    fused = [FusedScore(key, score, by_vector.get(key), text.get(key)) for key, score in totals.items()]
    return sorted(fused, key=lambda one: (-one.score, -(one.vector or 0.0)))


def _shares_of_whole(scores: Mapping[Key, float], whole: float) -> dict[Key, float]:
    whole = max(whole, *scores.values(), 0.0)
    return {key: score / whole if whole > 0 else 0.0 for key, score in scores.items()}


def _shares_of_spread(scores: Mapping[Key, float]) -> dict[Key, float]:
    least = min(scores.values(), default=0.0)
    spread = max(_LEAST_SPREAD, max(scores.values(), default=0.0) - least)
    return {key: (score - least) / spread for key, score in scores.items()}
