"""The choice of documents to look at when a query is ranked by BM25 and the best few are wanted. Pure.

Every document with one of the words could be ranked, but a common word stands in hundreds of thousands. A document that
has many of the words, and rare ones, outranks one that has few and common ones; so conjunctions of words are tried from
those that tell most downwards, until enough documents are to be expected and what is left out could hardly reach them.
How many documents a word stands in is estimated; words that nothing is known of are rare.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, prod

# Conjunctions are made of so many of the rarest words; the others only add to the scores of what is found.
_MOST_COMBINED = 6
# A document that has a word several times scores up to so much more than one that has it once.
_SLACK = 1.4
# The same for conjunctions of common words alone, which take longest to find.
_SLACK_OF_COMMON = 1.2
# A query of common words alone that this share of all documents matches is answered from the newest of them.
COMMON_SHARE = 0.02

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Documents that have all words of one of these conjunctions.

    sure: in numbers that are bounded by those of a rare word. unsure: of common words alone, which may stand together
    more often than expected. newest: so many documents match that the newest of all will do.
    """

    sure: tuple[Words, ...]
    unsure: tuple[Words, ...]
    newest: bool = False

    @property
    def whole(self) -> frozenset[str]:
        """Words all of whose documents are candidates: how many these are need not be estimated."""
        return frozenset(words[0] for words in self.sure if len(words) == 1)


def choose_candidates(shares: Mapping[str, float], total: int, *, limit: int, most: int) -> Candidates:
    """Returns candidates for the best `wanted` of `total` documents, of which about `most` may be looked at.

    shares: of the documents, that have each word of the query; between 0 and 1, both excluded.
    """
    chosen: dict[Words, float] = {}
    for words in _promising_conjunctions(shares, total, limit, most):
        these = set(words)
        kept = {other: matches for other, matches in chosen.items() if not these.issubset(other)}
        kept[words] = _expected_matches(words, shares, total)
        if sum(kept.values()) <= most:
            chosen = kept
    if not chosen:
        everything = rarest_words(shares, _MOST_COMBINED)
        share = prod(shares[word] for word in everything)
        return Candidates((), (everything,), newest=share >= COMMON_SHARE)
    sure = tuple(words for words in chosen if shares[words[0]] * total <= most)
    return Candidates(sure, tuple(words for words in chosen if words not in sure))


def widen_candidates(shares: Mapping[str, float], total: int, *, most: int) -> Candidates:
    """Returns documents with any of the rarest words, where the conjunctions have led to few."""
    sure: list[Words] = []
    for word in sorted(shares, key=shares.__getitem__):
        if sum(shares[other] for [other] in sure) * total + shares[word] * total > most:
            return Candidates(tuple(sure), ((word,),), newest=shares[word] >= COMMON_SHARE)
        sure.append((word,))
    return Candidates(tuple(sure), ())


def rarest_words(shares: Mapping[str, float], most: int) -> Words:
    """Returns the words that tell most, first."""
    return tuple(sorted(shares, key=shares.__getitem__)[:most])


def weight(share: float, total: int) -> float:
    """Returns the inverse document frequency of BM25."""
    return log(1 + (total * (1 - share) + 0.5) / (total * share + 0.5))


def _promising_conjunctions(shares: Mapping[str, float], total: int, limit: int, most: int) -> Iterator[Words]:
    """Yields conjunctions of the rarest words, as far as documents with no more than these may be among the best."""
    considered = rarest_words(shares, _MOST_COMBINED)
    weights = {word: weight(shares[word], total) for word in considered}
    ranked = [(sum(map(weights.__getitem__, words)), words) for words in _conjunctions(considered)]
    ranked.sort(key=lambda pair: -pair[0])
    least, met = 0.0, 0.0
    for weight_of_all, words in ranked:
        if _SLACK * weight_of_all < least:
            return
        if shares[words[0]] * total <= most or _SLACK_OF_COMMON * weight_of_all >= least:
            yield words
        if least:
            continue
        met += total * prod(shares[word] if word in words else 1 - shares[word] for word in considered)
        if met >= limit:
            least = weight_of_all


def _conjunctions(words: Sequence[str]) -> Iterator[Words]:
    return (some for size in range(1, len(words) + 1) for some in combinations(words, size))


def _expected_matches(words: Words, shares: Mapping[str, float], total: int) -> float:
    return total * prod(shares[word] for word in words)
