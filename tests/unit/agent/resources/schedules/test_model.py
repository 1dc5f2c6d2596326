"""When schedules come: over both changes of the clocks, at the ends of months, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from services.agent.core.zones import zone
from services.agent.resources.schedules.model import FURTHEST, check_cron, check_time, next_time, pause
from services.common.core.refusals import Refused

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def times(expression: str, timezone: str, after: str, count: int) -> list[str]:
    """The next times as the clocks of the zone show them, with their offsets."""
    found, now = [], datetime.fromisoformat(after)
    for _ in range(count):
        following = next_time(expression, timezone, now)
        assert following is not None
        assert following > now
        assert following.tzinfo is UTC
        found.append(following.astimezone(zone(timezone)).strftime("%m-%d %H:%M%z"))
        now = following
    return found


@pytest.mark.parametrize(
    ("expression", "timezone", "after", "expected"),
    [
        ("0 9 * * *", BERLIN, "2026-03-27T12:00+00:00", ["03-28 09:00+0100", "03-29 09:00+0200", "03-30 09:00+0200"]),
        ("0 9 * * *", BERLIN, "2026-10-23T12:00+00:00", ["10-24 09:00+0200", "10-25 09:00+0100", "10-26 09:00+0100"]),
        # The hour that is left out: right after it, and once.
        ("30 2 * * *", BERLIN, "2026-03-28T00:00+00:00", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        ("15,45 2 * * *", BERLIN, "2026-03-28T12:00+00:00", ["03-29 03:00+0200", "03-30 02:15+0200"]),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00+00:00", ["03-08 03:00-0400", "03-09 02:30-0400"]),
        # The hour that comes twice: in the first of both.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00+00:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00+00:00", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        # Half an hour of daylight saving time.
        ("45 1 * * *", LORD_HOWE, "2026-04-04T00:00+00:00", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        # By the clock: every hour is an hour.
        ("0 * * * *", BERLIN, "2026-03-29T00:30+00:00", ["03-29 03:00+0200", "03-29 04:00+0200"]),
        ("0 * * * *", BERLIN, "2026-10-24T23:30+00:00", ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"]),
        (
            "*/30 2 * * *",
            BERLIN,
            "2026-10-24T23:40+00:00",
            ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100"],
        ),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00+00:00", ["02-29 00:00+0000"]),
        ("0 0 L * *", "UTC", "2026-01-31T12:00+00:00", ["02-28 00:00+0000", "03-31 00:00+0000"]),
        ("0 9 * * MON-FRI", "UTC", "2026-11-20T10:00+00:00", ["11-23 09:00+0000"]),
        ("59 23 31 12 *", "UTC", "2026-12-31T23:59+00:00", ["12-31 23:59+0000"]),
        # A zone that nobody knows is UTC, as for turns.
        ("0 9 * * *", "Mars/Olympus", "2026-01-01T00:00+00:00", ["01-01 09:00+0000"]),
    ],
)
def test_next_times(expression: str, timezone: str, after: str, expected: list[str]) -> None:
    assert times(expression, timezone, after, len(expected)) == expected


def test_in_the_second_pass_of_an_hour_its_first_is_over() -> None:
    # 02:30 for the second time; 02:45 was over an hour ago.
    second = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert next_time("45 2 * * *", BERLIN, second) == datetime(2026, 10, 26, 1, 45, tzinfo=UTC)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * *",
        "0 0 * * * 2026",
        "@daily",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "5-1 * * * *",
        "a b c d e",
        "-1 * * * *",
        "1, * * * *",
        "* * * * ²L",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "0 " * 200,
        f"{'0,' * 200}0 * * * *",
    ],
)
def test_expressions_that_are_refused(expression: str) -> None:
    with pytest.raises(Refused) as refused:
        check_cron(expression, "UTC", datetime(2026, 1, 1, tzinfo=UTC))
    assert refused.value.reason == "SCHEDULE_INVALID"
    assert "cron_expression" in refused.value.message


def test_times_that_are_refused() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    soon = now + timedelta(microseconds=1)
    assert check_time(soon, now) == soon
    for at in (now, now - timedelta(days=1), now + FURTHEST + timedelta(seconds=1)):
        with pytest.raises(Refused, match="scheduled_at"):
            check_time(at, now)


def test_pauses_grow_to_five_minutes() -> None:
    assert [pause(attempts).total_seconds() for attempts in (1, 2, 3, 9, 10, 32_000)] == [1, 2, 4, 256, 300, 300]
