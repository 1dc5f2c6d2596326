"""`loci/hash`: embeddings by feature hashing (Weinberger et al. 2009), with no model and no network. Pure.

A text's features are its words (weight 0.6, common English words 0.2), the words without an English ending
(0.8), the character 3- to 5-grams of each word (0.25) and neighbouring pairs of words (0.5). Each feature is
hashed by CRC-32 to one of 384 components and a sign; repeated features count with the square root of their
number; the vector has length 1. Texts are near when they share words or stems. It knows no meanings: synonyms
are far apart.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

DIMENSIONS = 384
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    _WORD.findall(
        "a about an and are as at be but by for from had has have he her his i in is it its my not of on or our she"
        " so that the their them they this to was we were what when where which who will with you your"
    )
)


def embed(text: str) -> list[float]:
    """The vector of a text."""
    vector = [0.0] * DIMENSIONS
    # Keeps the length above zero for texts without a single word.
    vector[0] = 0.01
    for (feature, weight), count in Counter(_features(text.lower())).items():
        hashed = zlib.crc32(feature.encode())
        value = weight * math.sqrt(count)
        vector[hashed % DIMENSIONS] += value if hashed & 0x8000_0000 else -value
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def _features(text: str) -> Iterator[tuple[str, float]]:
    words = _WORD.findall(text)
    for word in words:
        common = word in _COMMON
        yield f"w {word}", 0.2 if common else 0.6
        if not common:
            yield f"s {_stem(word)}", 0.8
            yield from _grams(word)
    for first, second in pairwise(words):
        yield f"p {first} {second}", 0.5


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word.removesuffix(ending)
    return word


def _grams(word: str) -> Iterator[tuple[str, float]]:
    padded = f"<{word}>"
    for size in (3, 4, 5):
        for start in range(len(padded) - size + 1):
            yield f"g {padded[start : start + size]}", 0.25
