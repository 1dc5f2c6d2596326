"""Moments as Protobuf has them."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from services.common.errors import InvalidArgument


def moment(stamp: Timestamp) -> datetime:
    """Raises InvalidArgument (TIME_INVALID)."""
    try:
        return stamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument("a time is outside of the years 1 to 9999", reason="TIME_INVALID") from None
