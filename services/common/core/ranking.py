"""Ranking by words. Pure.

Text is ranked by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) in SQL.
"""

from collections.abc import Iterable
from itertools import accumulate, pairwise
from math import pi

BM25_K1 = 1.2
# Of memories and messages, a long one says more, and is seldom long for nothing: length counts less than in web pages.
BM25_B = 0.4
_MOST_FREQUENCY = 32
_LEAST_DEPTH = 50


def depth(limit: int) -> int:
    """Returns how many results each ranking gives: enough that fusion can lift what stands lower in one of them."""
    return max(_LEAST_DEPTH, 2 * limit)


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
