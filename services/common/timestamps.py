"""Moments on the wire."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, overload

from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def timestamp(moment: datetime) -> Timestamp: ...
@overload
def timestamp(moment: None) -> None: ...
def timestamp(moment: datetime | None) -> Timestamp | None:
    """Returns a moment; without an offset it is of UTC. None stays None.

    Raises OverflowError beyond its years 1 to 9999.
    """
    if moment is None:
        return None
    # Cheaper than its own FromDatetime, and lists are full of times.
    since = (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1_000)


def moment_in(message: Any, name: str, refuse: Callable[[str, str], Exception]) -> datetime | None:
    """Returns the time in a field; None where it is not set.

    Raises what `refuse` makes of the name and the problem, for a time that is beyond the years 1 to 9999.
    """
    if not message.HasField(name):
        return None
    try:
        moment: datetime = getattr(message, name).ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise refuse(name, "is not a time between the years 1 and 9999") from None
    return moment
