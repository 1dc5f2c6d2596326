"""Synthetic passages: texts whose words are as unequally frequent as in a language, and vectors that crowd together.

The same seed gives the same. A passage belongs to one of 500 topics: half of its words are the topic's own, the others
anybody's (Zipf's law, 50,000 words); its vector lies about the topic's middle, as far from it as the middles lie from
one another, in 48 of the directions there are. That is harder on an index than clusters that stand apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

TOPICS = 500
WORDS = 50_000
LENGTH = 50
BATCH = 10_000
_OF_TOPIC = 200
_DIRECTIONS = 48
_NOISE = 0.05
_SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Batch:
    """Passages from number `first` on."""

    first: int
    texts: list[str]
    vectors: Matrix


class Corpus:
    """A source of passages, and of questions about them."""

    def __init__(self, dimensions: int, seed: int = 1) -> None:
        fixed = np.random.default_rng(seed)
        self._seed = seed
        self._dimensions = dimensions
        self._words = np.array([_word(number) for number in range(WORDS)], dtype=object)
        weights = 1 / np.arange(1, WORDS + 1)
        self._frequencies = np.cumsum(weights) / weights.sum()
        self._own = fixed.integers(WORDS // 100, WORDS, (TOPICS, _OF_TOPIC))
        self._middles = fixed.standard_normal((TOPICS, _DIRECTIONS), dtype=np.float32)
        self._directions = fixed.standard_normal((_DIRECTIONS, dimensions), dtype=np.float32)

    def batches(self, count: int) -> Iterator[Batch]:
        """Yields `count` passages in batches."""
        for first in range(0, count, BATCH):
            texts, vectors = self._sample(min(BATCH, count - first), first + 1, LENGTH)
            yield Batch(first, texts, vectors)

    def questions(self, count: int) -> tuple[list[str], Matrix]:
        """Returns questions of eight words each, with their vectors."""
        return self._sample(count, 0, 8)

    def further(self, count: int, number: int) -> tuple[list[str], Matrix]:
        """Returns passages that `batches` does not have; each number has its own."""
        return self._sample(count, 10**9 + number, LENGTH)

    def _sample(self, count: int, number: int, length: int) -> tuple[list[str], Matrix]:
        drawn = np.random.default_rng((self._seed, number))
        topics = drawn.integers(0, TOPICS, count)
        everybodys = np.searchsorted(self._frequencies, drawn.random((count, length // 2)))
        own = self._own[topics[:, None], drawn.integers(0, _OF_TOPIC, (count, length - length // 2))]
        texts = [" ".join(row) for row in self._words[np.hstack([own, everybodys])]]
        places = self._middles[topics] + drawn.standard_normal((count, _DIRECTIONS), dtype=np.float32)
        vectors = places @ self._directions
        noise = drawn.standard_normal((count, self._dimensions), dtype=np.float32)
        vectors += _NOISE * float(vectors.std()) * noise
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return texts, unit


def _word(number: int) -> str:
    """The word for a number; a more frequent one is no longer than a rare one."""
    syllables = ""
    number += len(_SYLLABLES)
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        syllables += _SYLLABLES[digit]
    return syllables


class Nearest:
    """The `count` nearest of all passages to each question, exactly."""

    def __init__(self, questions: Matrix, count: int) -> None:
        self._questions = questions
        self._count = count
        self._scores = np.full((len(questions), 0), 0, dtype=np.float32)
        self._numbers = np.full((len(questions), 0), 0, dtype=np.int64)

    def add(self, batch: Batch) -> None:
        """Takes a batch into account, as it is stored: in half precision."""
        stored = batch.vectors.astype(np.float16).astype(np.float32)
        scores = np.hstack([self._scores, self._questions @ stored.T])
        own = np.broadcast_to(np.arange(batch.first, batch.first + len(stored)), (len(scores), len(stored)))
        numbers = np.hstack([self._numbers, own])
        best = np.argsort(-scores, axis=1)[:, : self._count]
        self._scores = np.take_along_axis(scores, best, 1)
        self._numbers = np.take_along_axis(numbers, best, 1)

    def numbers(self) -> list[set[int]]:
        """Numbers of passages, for each question."""
        rows: Any = self._numbers.tolist()
        return [set(row) for row in rows]
