"""The yardstick: plain BM25 by a library (bm25s, with its own defaults), one index per tenant."""

from collections.abc import Sequence

import bm25s
import numpy

from bench.memory_score.history import History, Note, Question
from bench.memory_score.metrics import DEPTH, Answer


class Baseline:
    """Knows the notes as they are at the end; dates are a mask over the same ranking."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._notes: dict[int, list[Note]] = {}
        for note in history.notes:
            if note.id not in history.deleted:
                self._notes.setdefault(note.tenant, []).append(note)
        self._indexes = {tenant: _index([history.text(note) for note in of]) for tenant, of in self._notes.items()}

    def answer(self, question: Question) -> Answer:
        """The first that share a word."""
        notes = self._notes[question.tenant]
        mask = numpy.array([float(_within(question, note)) for note in notes])
        tokens = bm25s.tokenize([question.text], show_progress=False, return_ids=False)
        places, scores = self._indexes[question.tenant].retrieve(
            tokens, k=min(DEPTH, len(notes)), show_progress=False, weight_mask=mask
        )
        found = [notes[place] for place, score in zip(places[0], scores[0], strict=True) if score > 0]
        texts = [self._history.text(note) for note in found]
        return Answer(question, [note.id for note in found], texts, [note.tenant for note in found])


def _index(texts: Sequence[str]) -> bm25s.BM25:
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)
    return index


def _within(question: Question, note: Note) -> bool:
    after = question.start is None or note.made_at >= question.start
    return after and (question.end is None or note.made_at <= question.end)
