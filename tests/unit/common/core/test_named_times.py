"""The times that a question names."""

from datetime import UTC, date, datetime

import pytest

from services.common.core.named_times import asks_of_the_past, named_time

# A Saturday.
NOW = datetime(2026, 11, 28, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        # A day is told of for three days, a month for a week, a year for two.
        ("What happened on 2023-05-08?", "2023-05-08", "2023-05-11"),
        ("What happened on 2023/5/8?", "2023-05-08", "2023-05-11"),
        ("Was geschah am 8.5.2023?", "2023-05-08", "2023-05-11"),
        ("What did she say on 8 May, 2023?", "2023-05-08", "2023-05-11"),
        ("What did she say on the 8th of May 2023?", "2023-05-08", "2023-05-11"),
        ("What did she say on May 8th, 2023?", "2023-05-08", "2023-05-11"),
        ("What did she say on May 8?", "2026-05-08", "2026-05-11"),
        ("¿Qué hizo el 8 de mayo de 2023?", "2023-05-08", "2023-05-11"),
        ("Qu'a-t-il dit le 3 août 2024 ?", "2024-08-03", "2024-08-06"),
        ("Was war im März 2024?", "2024-03-01", "2024-04-07"),
        ("Che cosa ha fatto a maggio 2023?", "2023-05-01", "2023-06-07"),
        ("2023年5月8日に何をしましたか", "2023-05-08", "2023-05-11"),
        ("2023년 5월에 무엇을 했나요", "2023-05-01", "2023-06-07"),
        ("Who came in March 2025?", "2025-03-01", "2025-04-07"),
        ("Who came in December?", "2025-12-01", "2026-01-07"),
        ("Who came in November?", "2026-11-01", "2026-12-07"),
        ("Who came last November?", "2025-11-01", "2025-12-07"),
        ("Who came last May?", "2026-05-01", "2026-06-07"),
        ("Where were we last summer?", "2026-06-01", "2026-09-07"),
        ("Where were we in the summer of 2023?", "2023-06-01", "2023-09-07"),
        ("Where did we live in 2022?", "2022-01-01", "2023-01-15"),
        ("What did we say yesterday?", "2026-11-27", "2026-11-30"),
        ("What did we say today?", "2026-11-28", "2026-12-01"),
        ("What did we say last week?", "2026-11-16", "2026-11-29"),
        ("What did we say last weekend?", "2026-11-21", "2026-11-25"),
        ("What did we say last month?", "2026-10-01", "2026-11-07"),
        ("What did we say last year?", "2025-01-01", "2026-01-15"),
        ("What did we say on Friday?", "2026-11-27", "2026-11-30"),
        ("What did we say last Saturday?", "2026-11-21", "2026-11-24"),
        ("What did we say three days ago?", "2026-11-25", "2026-11-28"),
        ("What did we say two weeks ago?", "2026-11-11", "2026-11-24"),
        ("Did we meet between 2023-05-08 and 2023-06-01?", "2023-05-08", "2023-06-04"),
    ],
)
def test_what_is_named(text: str, start: str, end: str) -> None:
    named = named_time(text, NOW)
    assert named is not None
    assert (named.start.date(), named.end.date()) == (date.fromisoformat(start), date.fromisoformat(end))


@pytest.mark.parametrize(
    "text",
    [
        "May I go?",
        "The march on Rome",
        "The fall of the house",
        "What does Melanie think of June?",
        "Invoice 2023 of room 1984",
        "What is on the second of the lists?",
        "On the 31.6.2023 there was nothing.",
        "0001/99/99",
        "漢字",
        "",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert named_time(text, NOW) is None


def test_the_other_words_are_left() -> None:
    named = named_time("What did Tim cook in March 2025 for the neighbours?", NOW)
    assert named is not None
    assert named.rest == "What did Tim cook for the neighbours?"


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_the_ends_of_the_calendar(now: datetime) -> None:
    for text in ("last year", "ten years ago", "last week", "yesterday", "today", "last winter", "this year"):
        named_time(text, now)


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("Where did Ada live before?", True),
        ("Where did she USED TO work?", True),
        ("What was Tim's previous job?", True),
        ("Where does Ada live?", False),
        ("Is the performer there?", False),
    ],
)
def test_who_asks_of_the_past(text: str, past: bool) -> None:
    assert asks_of_the_past(text) is past
