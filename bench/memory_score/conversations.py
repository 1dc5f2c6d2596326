"""Conversations and questions about them from a file in LoCoMo's JSON form, as a history. Pure.

The form: a list of conversations, each with `conversation` (`session_N` are its turns: `speaker`, `dia_id`, `text`, and
`blip_caption` of a picture; `session_N_date_time` is their day, as "1:56 pm on 8 May, 2023") and `qa` (`question`,
`category`, and `evidence`: ids of turns). Each conversation becomes a tenant, each turn a note.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from bench.memory_score.history import History, Note, Question

# The numbers of the form's categories; questions of the fifth have no answer.
_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_SESSION = re.compile(r"session_(\d+)")
# Ids are not always clean: "D8:6; D9:17", "D:11:26", "D30:05".
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
_TURN_SECONDS = 20
_Turn = tuple[int, int]


class DataError(Exception):
    """A file that is not of the form. Its text is one line."""


def read_history(text: str) -> History:
    """Returns the history of a file's text. Questions whose evidence is not among the turns are left out.

    Raises DataError.
    """
    try:
        samples = json.loads(text)
        parts = [_read_sample(number, sample) for number, sample in enumerate(samples)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the data is not in LoCoMo's JSON form: {type(error).__name__}: {error}") from None
    notes = [note for turns, _ in parts for note in turns]
    questions = [question for _, asked in parts for question in asked]
    if not questions:
        raise DataError("the data has no question whose evidence is among its turns")
    return History(notes, {}, frozenset(), questions)


def _read_sample(number: int, sample: Mapping[str, Any]) -> tuple[list[Note], list[Question]]:
    notes = dict(_turns(number, sample["conversation"]))
    return list(notes.values()), list(_questions(number, sample["qa"], notes))


def _turns(number: int, conversation: Mapping[str, Any]) -> Iterator[tuple[_Turn, Note]]:
    """Yields turns by session and number, in order of time."""
    sessions = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    for session in sessions:
        begin = _time(conversation[f"session_{session}_date_time"])
        for place, turn in enumerate(conversation[f"session_{session}"]):
            made_at = begin + timedelta(seconds=_TURN_SECONDS * place)
            note_id = uuid5(NAMESPACE_URL, f"{number} {turn['dia_id']}")
            for key in _turn_ids([turn["dia_id"]]):
                yield key, Note(note_id, number, _text(turn), made_at, (f"session-{session}",))


def _text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [picture: {caption}]" if caption else "")


def _questions(number: int, asked: Sequence[Mapping[str, Any]], notes: Mapping[_Turn, Note]) -> Iterator[Question]:
    for one in asked:
        evidence = _evidence(one.get("evidence", []), notes)
        if one["category"] in _KINDS and evidence:
            yield Question(_KINDS[one["category"]], number, str(one["question"]), evidence)


def _evidence(ids: Sequence[str], notes: Mapping[_Turn, Note]) -> frozenset[UUID]:
    return frozenset(notes[turn].id for turn in _turn_ids(ids) if turn in notes)


def _turn_ids(ids: Sequence[str]) -> Iterator[_Turn]:
    return ((int(match[1]), int(match[2])) for one in ids for match in _TURN_ID.finditer(one))


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
