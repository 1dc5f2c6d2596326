"""The binary event stream of AWS: frames with a length, headers and check sums, decoded by botocore."""

from collections.abc import Sequence
from dataclasses import dataclass

from botocore.eventstream import EventStreamBuffer, ParserError


@dataclass(frozen=True, slots=True)
class Frame:
    """`kind`: event, exception or error; `name`: of the event or exception; `payload`: JSON."""

    kind: str
    name: str
    payload: bytes


class EventStreamParser:
    """A transport.Parser."""

    media_type = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self._buffer = EventStreamBuffer()

    def feed(self, chunk: bytes) -> Sequence[Frame]:
        """The frames that are complete with this chunk. Raises ValueError where lengths or check sums are wrong."""
        self._buffer.add_data(chunk)
        try:
            return [_frame(message.headers, message.payload) for message in self._buffer]
        except ParserError as error:
            raise ValueError(str(error)) from error

    def close(self) -> Sequence[Frame]:
        """A part of a frame is nothing: the stream broke off."""
        return ()


def _frame(headers: dict[str, str], payload: bytes) -> Frame:
    kind = headers.get(":message-type", "event")
    if kind == "error":
        return Frame(kind, headers.get(":error-code", ""), headers.get(":error-message", "").encode())
    return Frame(kind, headers.get(":exception-type" if kind == "exception" else ":event-type", ""), payload)
