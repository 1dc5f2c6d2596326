"""The binary event stream of AWS: frames with a length, headers and check sums, decoded by botocore."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from botocore.eventstream import EventStreamBuffer, ParserError

_LENGTH_BYTES = 4
# Lengths and check sums alone.
_LEAST_OF_FRAME = 16
_MOST_OF_FRAME = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frame:
    """`kind`: event, exception or error; `name`: of the event or exception; `payload`: JSON."""

    kind: str
    name: str
    payload: bytes

    @property
    def data(self) -> bytes:
        """The JSON {name: payload} of an event, {"exception": payload, "__type": name} of an exception, and of an error
        {"error": {"__type", "message"}}."""
        if self.kind == "error":
            message = self.payload.decode("utf-8", "replace")
            return orjson.dumps({"error": {"__type": self.name, "message": message}})
        name, payload = orjson.dumps(self.name), self.payload or b"{}"
        if self.kind == "exception":
            return b'{"exception":%b,"__type":%b}' % (payload, name)
        return b"{%b:%b}" % (name, payload)


class EventStreamParser:
    """A transport.Parser."""

    media_type = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self._buffer = EventStreamBuffer()
        # botocore's own copies all that waits with every chunk.
        self._waiting = bytearray()

    def feed(self, chunk: bytes) -> Sequence[Frame]:
        """The frames that are complete with this chunk. Raises ValueError where lengths or check sums are wrong."""
        self._waiting += chunk
        frames: list[Frame] = []
        while len(self._waiting) >= _LENGTH_BYTES:
            length = int.from_bytes(self._waiting[:_LENGTH_BYTES], "big")
            if not _LEAST_OF_FRAME <= length <= _MOST_OF_FRAME:
                raise ValueError(f"a frame of {length:,} bytes")
            if len(self._waiting) < length:
                break
            self._buffer.add_data(bytes(self._waiting[:length]))
            del self._waiting[:length]
            try:
                frames += [_frame(message.headers, message.payload) for message in self._buffer]
            except ParserError as error:
                raise ValueError(str(error)) from error
        return frames

    def close(self) -> Sequence[Frame]:
        """A part of a frame is nothing: the stream broke off."""
        return ()


def _frame(headers: dict[str, str], payload: bytes) -> Frame:
    kind = headers.get(":message-type", "event")
    if kind == "error":
        return Frame(kind, headers.get(":error-code", ""), headers.get(":error-message", "").encode())
    return Frame(kind, headers.get(":exception-type" if kind == "exception" else ":event-type", ""), payload)
