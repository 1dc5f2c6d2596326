"""Ranking by words, and one order out of several rankings. Pure.

Text is ranked by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) in SQL; vectors by
cosine. Their scores cannot be compared, so ranks are: reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR
2009) adds 1 / (60 + rank) over the lists in which something stands.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from math import pi
from typing import TypeVar
from uuid import UUID

RRF_K = 60
BM25_K1 = 1.2
BM25_B = 0.75
_MOST_FREQUENCY = 32
_LEAST_DEPTH = 50

Key = TypeVar("Key", bound=Hashable)


def reciprocal_ranks(rankings: Iterable[Iterable[Key]]) -> dict[Key, float]:
    """Returns the sum of 1 / (60 + rank) of everything that stands in a list; each list is best first, without
    duplicates.
    """
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
    return scores


def depth(limit: int) -> int:
    """Returns how many results each ranking gives: enough that fusion can lift what stands lower in one of them."""
    return max(_LEAST_DEPTH, 2 * limit)


def fuse(
    vectors: Sequence[Mapping[Key, float]], text: Mapping[Key, float], uuid_of: Callable[[Key], UUID]
) -> list[tuple[Key, float, float | None, float | None]]:
    """Returns one order out of the scores by key of several rankings, each best first: by reciprocal rank.

    vectors: a ranking for each embedding model, which have no key in common. Each item is a key, its score, and that by
    vector and by text, None where the ranking does not have it. Ties go to the better vector, then to the older UUID.
    """
    by_vector = {key: score for ranking in vectors for key, score in ranking.items()}
    scores = reciprocal_ranks([*vectors, text])
    fused = [(key, score, by_vector.get(key), text.get(key)) for key, score in scores.items()]
    return sorted(fused, key=lambda one: (-one[1], -(one[2] or 0.0), uuid_of(one[0]).int))


def any_of(lexemes: Iterable[str]) -> str:
    """Returns "has one of the lexemes" in tsquery's notation; of none, an empty text."""
    joined = " | ".join(map(quote_lexeme, lexemes))
    return joined and f"({joined})"


def all_of(lexemes: Iterable[str]) -> str:
    """Returns "has every one of the lexemes" in tsquery's notation."""
    return " & ".join(map(quote_lexeme, lexemes))


def quote_lexeme(lexeme: str) -> str:
    """Returns a lexeme as a tsquery."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def frequency_thresholds() -> list[float]:
    """Returns bounds between the values that ts_rank gives for a word occurring 1, 2, ... 32 times.

    With all weights 1 and one word, ts_rank is the sum of 1/j^2 for j up to the number of occurrences, over
    pi^2/6: strictly rising, so `width_bucket(rank, thresholds) + 1` is that number. It is the only cheap
    way to it in SQL.
    """
    ranks = [total * 6 / pi**2 for total in accumulate(1 / j**2 for j in range(1, _MOST_FREQUENCY + 1))]
    return [(low + high) / 2 for low, high in pairwise(ranks)]
