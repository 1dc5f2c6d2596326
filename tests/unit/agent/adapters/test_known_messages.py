"""Messages that were read before: which are made anew, and which are forgotten."""

import copy
import time
from typing import Any
from uuid import UUID

import pytest

from services.agent.adapters.known_messages import KnownMessages
from services.agent.core.messages import text_of
from services.agent.postgres.rows import message_from_json


def row(number: int, text: str = "hello") -> dict[str, Any]:
    """A message as START gives it."""
    return {
        "id": str(UUID(int=number)),
        "role": "user",
        "content": [{"type": "text", "text": text}],
        "name": None,
        "otid": None,
        "sender_id": None,
        "run_id": str(UUID(int=7)),
        "step_id": None,
        "fact": 1,
        "seq": number,
        "created_at": "2026-11-23T01:02:03+00:00",
    }


def test_a_row_that_is_the_same_is_the_same_message() -> None:
    known, rows = KnownMessages(), [row(1), row(2, "bye")]
    first = known.read(rows)
    assert first == tuple(map(message_from_json, rows))
    again = known.read([*copy.deepcopy(rows), row(3)])
    assert [one is other for one, other in zip(first, again, strict=False)] == [True, True]
    assert text_of(again[2]) == "hello"


@pytest.mark.parametrize(
    "change",
    [{"content": [{"type": "text", "text": "other"}]}, {"seq": 9}, {"name": "Ada"}, {"step_id": str(UUID(int=4))}],
)
def test_a_row_that_has_changed_is_another_message(change: dict[str, Any]) -> None:
    known = KnownMessages()
    known.read([row(1)])
    changed = row(1) | change
    [message] = known.read([changed])
    assert (message, message.seq) == (message_from_json(changed), changed["seq"])
    assert known.read([changed])[0] is message


def test_the_longest_unread_are_forgotten_first() -> None:
    known = KnownMessages(most_bytes=3 * 2_000 + 300)
    first, second = known.read([row(1, "x" * 50)]), known.read([row(2, "x" * 50)])
    known.read([row(1, "x" * 50)])
    known.read([row(3, "x" * 50), row(4, "x" * 50)])
    assert known.read([row(1, "x" * 50)])[0] is first[0]
    assert known.read([row(2, "x" * 50)])[0] is not second[0]


def test_one_that_is_larger_than_all_may_be_is_read_and_forgotten() -> None:
    known = KnownMessages(most_bytes=2_100)
    large = known.read([row(1, "x" * 5_000)])
    assert text_of(large[0]) == "x" * 5_000
    small = known.read([row(2)])
    assert known.read([row(2)])[0] is small[0]
    assert known.read([row(1, "x" * 5_000)])[0] is not large[0]


def test_what_nobody_read_for_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    known = KnownMessages(idle_seconds=60)
    first = known.read([row(1)])
    now[0] += 61
    known.read([row(2)])
    assert known.read([row(1)])[0] is not first[0]
