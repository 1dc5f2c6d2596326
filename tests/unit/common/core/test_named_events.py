"""Events that a question counts from."""

from datetime import UTC, datetime

import pytest

from services.common.core.named_events import NamedEvent, named_event


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (
            "What did Tim cook before the trip to Rome?",
            NamedEvent("the trip to Rome", before=True, rest="What did Tim cook ?"),
        ),
        ("AFTER my birthday, who came?", NamedEvent("my birthday", before=False, rest=", who came?")),
        ("Has she written since her exam", NamedEvent("her exam", before=False, rest="Has she written")),
        ("Where did Ada live before?", None),
        ("Before Rome we were in Paris", None),
        ("What is before the?", None),
        ("Look after it", None),
        ("", None),
    ],
)
def test_what_a_question_counts_from(text: str, event: NamedEvent | None) -> None:
    assert named_event(text) == event


def test_what_was_before_it_ends_there() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert NamedEvent("the trip", before=True, rest="").bounds(moment) == (None, moment)
    assert NamedEvent("the trip", before=False, rest="").bounds(moment) == (moment, None)
