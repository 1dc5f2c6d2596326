"""Made-up words: concepts with several names each, people, places, and a Zipf distribution for small talk. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

_ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "st",
    "t",
    "tr",
    "v",
    "z",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_CODAS = ("", "b", "d", "k", "l", "m", "n", "p", "r", "t")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """concepts: groups of words that mean the same; names of people and of places; filler: common words first."""

    concepts: Sequence[Sequence[str]]
    people: Sequence[str]
    places: Sequence[str]
    filler: Sequence[str]

    def small_talk(self, random: Random, words: int) -> str:
        """Filler, common words often (Zipf)."""
        weights = [1 / rank for rank in range(1, len(self.filler) + 1)]
        return " ".join(random.choices(self.filler, weights, k=words))


def vocabulary(seed: int, *, concepts: int, synonyms: int, people: int, places: int, filler: int) -> Vocabulary:
    """The same for the same arguments; no word stands for two things."""
    words = _words(Random(f"words {seed}"))

    def take(number: int) -> list[str]:
        return [next(words) for _ in range(number)]

    return Vocabulary([take(synonyms) for _ in range(concepts)], take(people), take(places), take(filler))


def _words(random: Random) -> Iterator[str]:
    """Distinct words of two or three syllables; none ends as an English ending does, so that no two share a stem."""
    seen: set[str] = set()
    while True:
        syllables = (
            random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS)
            for _ in range(random.choice((2, 3)))
        )
        word = "".join(syllables) + random.choice("bdkmp")
        if word not in seen:
            seen.add(word)
            yield word
