"""Moments on the wire are those that protobuf's own, slower way makes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.common.timestamps import timestamp


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 1, 31, 9, 30, 0, 123_456, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(2026, 1, 31, 9, 30),  # it is of UTC
    ],
)
def test_a_moment_is_what_protobuf_makes_of_it(moment: datetime) -> None:
    expected = Timestamp()
    expected.FromDatetime(moment)
    assert timestamp(moment) == expected


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))),
    ],
)
def test_a_moment_that_utc_does_not_have_is_refused(moment: datetime) -> None:
    with pytest.raises(OverflowError):
        timestamp(moment)


def test_none_stays_none() -> None:
    assert timestamp(None) is None
