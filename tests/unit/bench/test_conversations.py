"""A file in LoCoMo's JSON form becomes a history."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bench.memory_score.conversations import DataError, read_history
from bench.memory_score.history import Question
from bench.memory_score.metrics import Answer, figures

SAMPLE: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_2_date_time": "9:05 am on 1 June, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a dog on a beach"}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I got a dog."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "What is its name?"},
        ],
        "session_3_date_time": "9:05 am on 2 June, 2023",
    },
    "qa": [
        {"question": "Where was the dog?", "answer": "x", "evidence": ["D2:1"], "category": 4},
        {"question": "Who has a dog?", "answer": 1, "evidence": ["D:1:01; D2:1", "D9:9"], "category": 1},
        {"question": "When?", "evidence": ["D1:2"], "category": 2},
        {"question": "Nobody said", "adversarial_answer": "x", "evidence": ["D1:1"], "category": 5},
        {"question": "Why?", "answer": "x", "evidence": [], "category": 3},
    ],
}


def test_turns_are_notes_in_order_of_time_and_questions_name_their_evidence() -> None:
    history = read_history(json.dumps([SAMPLE, SAMPLE]))
    first, second, third = history.notes[:3]
    assert [note.text for note in (first, second, third)] == [
        "Ada: I got a dog.",
        "Ben: What is its name?",
        "Ben: Look! [picture: a dog on a beach]",
    ]
    assert (first.made_at, first.tags) == (datetime(2023, 5, 8, 13, 56, tzinfo=UTC), ("session-1",))
    assert first.made_at < second.made_at < third.made_at
    assert {note.tenant for note in history.notes} == {0, 1}
    assert len({note.id for note in history.notes}) == 6
    assert history.questions[:3] == [
        Question("single-hop", 0, "Where was the dog?", frozenset({third.id})),
        Question("multi-hop", 0, "Who has a dog?", frozenset({first.id, third.id})),
        Question("temporal", 0, "When?", frozenset({second.id})),
    ]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"conversation": {}}]', '[{"conversation": {}, "qa": []}]'])
def test_another_form_is_said(text: str) -> None:
    with pytest.raises(DataError, match=r"form|no question"):
        read_history(text)


def test_recall_at_each_depth_by_kind() -> None:
    history = read_history(json.dumps([SAMPLE]))
    dog = history.questions[1]
    answer = Answer(dog, [history.notes[0].id, *[history.notes[1].id] * 9, history.notes[2].id], [], [])
    measured = figures([answer], (5, 10, 20))
    assert {name: measured[name] for name in measured if "multi-hop" in name} == {
        "recall@5, multi-hop": 0.5,
        "recall@10, multi-hop": 0.5,
        "recall@20, multi-hop": 1.0,
    }
    assert (measured["recall@20"], measured["MRR"]) == (1.0, 1.0)
