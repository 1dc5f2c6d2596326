"""Server-sent events, parsed by hand from the bytes of a response (WHATWG HTML, section 9.2).

Lines end with LF, CRLF or CR; comments are skipped; several data lines are joined with LF. Chunks may end
anywhere, also between CR and LF and inside a character.
"""

from typing import NamedTuple


class SseEvent(NamedTuple):
    """One event; `name` is empty where none was sent."""

    name: str
    data: bytes


class SseParser:
    """Feed it the chunks of one response."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that are complete with this chunk."""
        text = self._rest + chunk
        held = b""
        if b"\r" in text:
            if text.endswith(b"\r"):  # it may be the first half of a CRLF
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
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
        """What is left at the end of the body: some servers leave out the last blank line."""
        if self._rest.strip():
            self._take(self._rest.strip(b"\r"))
        self._rest = b""
        return [self._dispatch()] if self._data else []

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            self._data.append(line[6:])
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self) -> SseEvent:
        event = SseEvent(self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
        self._name, self._data = "", []
        return event
