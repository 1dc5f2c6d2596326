"""Moments as Protobuf has them."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from services.common.errors import InvalidArgument


def timestamp(moment: datetime | None) -> Timestamp | None:
    """None stays None."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def moment(stamp: Timestamp) -> datetime:
    """Raises InvalidArgument (TIME_INVALID)."""
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument("a time is outside of the years 1 to 9999", reason="TIME_INVALID") from None
