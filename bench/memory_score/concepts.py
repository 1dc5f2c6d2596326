"""A synthetic embedding that knows meanings and is bad at names, as the trained ones are. Pure.

The words of a concept share a direction; every other word has a weak one of its own, common words nearly none.
"""

import math
import re
from functools import lru_cache
from typing import Any

import numpy

from bench.memory_score.vocabulary import Vocabulary

DIMENSIONS = 256
_WORD = re.compile(r"\w+")
_MEANING, _NAME, _FILLER, _NOISE = 1.0, 0.12, 0.06, 0.25


class ConceptEmbedding:
    """Texts to vectors of length 1."""

    def __init__(self, words: Vocabulary) -> None:
        meaning = {word: (f"concept {place}", _MEANING) for place, group in enumerate(words.concepts) for word in group}
        names = {word: (f"name {word}", _NAME) for word in (*words.people, *words.places)}
        self._known = meaning | names

    def embed(self, text: str) -> list[float]:
        """The vector of a text: the same for the same text."""
        vector = _NOISE * _random_direction(f"text {text}")
        for word in _WORD.findall(text.lower()):
            name, weight = self._known.get(word) or self._known.get(word.removesuffix("s")) or (word, _FILLER)
            vector = vector + weight * _direction(name)
        return [float(value) for value in vector / math.sqrt(vector @ vector)]


def _random_direction(name: str) -> Any:
    values = numpy.random.default_rng(list(name.encode())).standard_normal(DIMENSIONS)
    return values / math.sqrt(values @ values)


_direction = lru_cache(maxsize=20_000)(_random_direction)
