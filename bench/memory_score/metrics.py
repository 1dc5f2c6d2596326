"""The quality of answers. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from uuid import UUID

from bench.memory_score.history import Question

# As many are asked for; rank and gain go by the first of them.
DEPTH, FIRST = 20, 10


@dataclass(frozen=True, slots=True)
class Answer:
    """The results for a question, best first: notes, their texts, and the tenants they belong to."""

    question: Question
    found: Sequence[UUID]
    texts: Sequence[str]
    tenants: Sequence[int]


# name -> the figure of the answers to questions that it concerns, 0 to 1
_FIGURES: dict[str, Callable[[Sequence[Answer]], float | None]] = {
    "recall@5": lambda answers: _mean(recall(answer, 5) for answer in answers if answer.question.evidence),
    "recall@10": lambda answers: _mean(recall(answer, 10) for answer in answers if answer.question.evidence),
    "recall@20": lambda answers: _mean(recall(answer, 20) for answer in answers if answer.question.evidence),
    "MRR": lambda answers: _mean(reciprocal_rank(answer) for answer in answers if answer.question.evidence),
    "NDCG@10": lambda answers: _mean(ndcg(answer) for answer in answers if answer.question.evidence),
    "stale facts first": lambda answers: _mean(stale(answer) for answer in answers if answer.question.outdated),
    "as-of correctness": lambda answers: _mean(
        recall(answer, 5) for answer in answers if answer.question.kind == "as of then"
    ),
    "deleted or corrected texts": lambda answers: _mean(leaks(answer) for answer in answers if answer.question.gone),
    "other tenants' notes": lambda answers: _mean(foreign(answer) for answer in answers),
}


def figures(answers: Sequence[Answer], depths: Sequence[int] = (10,)) -> dict[str, float]:
    """All figures, then recall at each depth by kind of question."""
    named = {name: figure(answers) for name, figure in _FIGURES.items()}
    kinds: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.question.evidence:
            kinds[answer.question.kind].append(answer)
    for kind, of in kinds.items():
        named |= {f"recall@{depth}, {kind}": _mean(recall(answer, depth) for answer in of) for depth in depths}
    return {name: value for name, value in named.items() if value is not None}


def recall(answer: Answer, depth: int) -> float:
    """Share of the evidence among the first."""
    evidence = answer.question.evidence
    return len(evidence.intersection(answer.found[:depth])) / len(evidence)


def reciprocal_rank(answer: Answer) -> float:
    """Returns the reciprocal rank of the first piece of evidence."""
    ranks = (rank for rank, found in enumerate(answer.found[:FIRST], 1) if found in answer.question.evidence)
    return 1 / next(ranks, math.inf)


def ndcg(answer: Answer) -> float:
    """Normalised discounted cumulative gain of the first ten, evidence counting 1."""
    evidence = answer.question.evidence
    gain = sum(1 / math.log2(rank + 1) for rank, found in enumerate(answer.found[:FIRST], 1) if found in evidence)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(len(evidence), FIRST) + 1))


def stale(answer: Answer) -> float:
    """1 when what was true before stands above what is true now, or stands there without it."""
    places = {found: place for place, found in enumerate(answer.found[:FIRST])}
    now = min((places[one] for one in answer.question.evidence if one in places), default=FIRST)
    before = min((places[one] for one in answer.question.outdated if one in places), default=FIRST)
    return float(before < now)


def leaks(answer: Answer) -> float:
    """1 when a text that is gone was found."""
    return float(any(text in answer.question.gone for text in answer.texts))


def foreign(answer: Answer) -> float:
    """1 when a note of another tenant was found."""
    return float(any(tenant != answer.question.tenant for tenant in answer.tenants))


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
