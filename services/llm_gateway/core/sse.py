"""Server-sent events, parsed by hand from the bytes of a response (WHATWG HTML, section 9.2).

Lines end with LF, CRLF or CR; comments are skipped; several data lines are joined with LF. Chunks may end
anywhere, also between CR and LF and inside a character.
"""

from typing import NamedTuple


class SseEvent(NamedTuple):
    """One event; `name` is empty where none was sent."""

    name: str
    data: bytes


_MARK = b"\xef\xbb\xbf"
# Of one event, and so of one line, in bytes.
MOST_OF_EVENT = 16 * 1024 * 1024


class SseParser:
    """The parser of one response; it is fed the chunks."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        # Grows in place: a long line may come byte by byte.
        self._rest = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        # A mark of the byte order that begins the stream is no part of its first line.
        self._mark = bytearray()
        self._may_begin = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Returns the events that are complete with this chunk. Raises ValueError for one that is too long."""
        if self._may_begin:
            chunk = self._begin(chunk)
        if b"\n" not in chunk and b"\r" not in chunk and not self._rest.endswith(b"\r"):
            self._rest += chunk
            self._check(len(self._rest))
            return []
        text = bytes(self._rest) + chunk if self._rest else chunk
        held = b""
        if b"\r" in text:
            if text.endswith(b"\r"):  # it may be the first half of a CRLF
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = bytearray(rest + held)
        self._check(len(rest))
        events: list[SseEvent] = []
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                events.append(self._dispatch())
            else:
                self._name = ""
        return events

    def close(self) -> list[SseEvent]:
        """Returns the last event where the body ends without a blank line, as with some servers."""
        if self._rest.strip():
            self._take(bytes(self._rest.strip(b"\r")))
        self._rest = bytearray()
        return [self._dispatch()] if self._data else []

    def _begin(self, chunk: bytes) -> bytes:
        """Returns the beginning of the stream without the mark; nothing while it may become one."""
        self._mark += chunk
        if len(self._mark) < len(_MARK) and _MARK.startswith(self._mark):
            return b""
        self._may_begin = False
        return bytes(self._mark).removeprefix(_MARK)

    def _check(self, more: int) -> None:
        if self._size + more > MOST_OF_EVENT:
            raise ValueError(f"an event is longer than {MOST_OF_EVENT:,} bytes")

    def _take(self, line: bytes) -> None:
        self._check(len(line))
        if line.startswith(b"data: "):
            self._data.append(line[6:])
            self._size += len(line)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(line)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self) -> SseEvent:
        event = SseEvent(self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
        self._name, self._data, self._size = "", [], 0
        return event
