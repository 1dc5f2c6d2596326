"""Samples of large archives: in how many passages a common word stands. Pure.

A search has to know that before it looks, to choose by which words to look and what each of them weighs. Counting in
all passages would take longer than the search; a sample tells about common words what there is to tell, and words
that it does not have are rare.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# What a job is called that takes one; its subject is an archive, or the tenant.
WORD_SAMPLE = "word_sample"
# Of fewer passages there is none: they add little to a search, or nothing is estimated in it.
FEWEST_PASSAGES = 500
SAMPLED = 30_000
# Words of fewer passages are rare enough to look at all of these, and then they are counted.
_RARE_PASSAGES = 50
# A word is kept that the sample has so often; less may be chance.
_FEWEST = 3
# A sample is old when there are so many times the passages it was taken of.
_GROWTH = 1.25


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of an archive, or of all of a tenant, that had `passages` when `sampled` of them were read."""

    passages: int
    sampled: int


def fewest(sample: Sample) -> int:
    """Returns a word that fewer of the sampled passages have is not kept."""
    return max(_FEWEST, -(-_RARE_PASSAGES * sample.sampled // max(1, sample.passages)))


def unknown_share(samples: Sequence[Sample]) -> float:
    """Returns the supposed share of a word that none of the samples has: half of what it has at most."""
    passages = sum(sample.passages for sample in samples)
    rare = sum(fewest(sample) / max(1, sample.sampled) * sample.passages for sample in samples)
    return min(0.5, rare / max(1, passages) / 2)


def is_old(sample: Sample | None, passages: int) -> bool:
    """Returns whether to take one, again or at all, now that there are so many passages."""
    return passages > FEWEST_PASSAGES and (sample is None or passages > _GROWTH * sample.passages)
