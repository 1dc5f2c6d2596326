"""A synthetic embedding that knows meanings and is bad at names, as the trained ones are. Pure.

The words of a concept share a direction; every other word has a weak one of its own, common words nearly none.
"""

import math
import re
from functools import lru_cache
from random import Random

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
        vector = [_NOISE * value for value in _direction(f"text {text}")]
        for word in _WORD.findall(text.lower()):
            name, weight = self._known.get(word) or self._known.get(word.removesuffix("s")) or (word, _FILLER)
            for place, value in enumerate(_direction(name)):
                vector[place] += weight * value
        length = math.hypot(*vector)
        return [value / length for value in vector]


@lru_cache(maxsize=20_000)
def _direction(name: str) -> list[float]:
    random = Random(name)
    values = [random.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = math.hypot(*values)
    return [value / length for value in values]
