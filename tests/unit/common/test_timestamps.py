"""Moments on the wire are those that protobuf's own, slower way makes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.tool.v1.execution_service_pb2 import ListReceiptsRequest
from services.common.timestamps import moment_in, timestamp


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


def test_a_field_that_is_not_set_has_no_time_and_one_out_of_range_is_refused() -> None:
    def refuse(name: str, problem: str) -> Exception:
        return ValueError(f"{name} {problem}")

    request = ListReceiptsRequest(since=Timestamp(seconds=1))
    assert moment_in(request, "since", refuse) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert moment_in(request, "until", refuse) is None
    request.until.seconds = 2**60
    with pytest.raises(ValueError, match="until is not a time between the years 1 and 9999"):
        moment_in(request, "until", refuse)
