"""Frames of server-sent events, and the headers of a stream of them. Pure.

Every stream of the gateway is made of these.

Several clients split lines as their language does, not as the standard has it (WHATWG HTML, 9.2: LF, CR, CRLF): at
U+0085, U+2028 and U+2029 too, and half an event is none. JSON can say the three without having them.
"""

from typing import Any

import orjson

# Kept by no cache, and sent on as they come: proxies that compress hold a stream back.
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
_LINE_ENDS = (("\u0085".encode(), b"\\u0085"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"))

# The beginnings of these characters, by their length.
_BEGINNINGS = {
    size: tuple({character[:size] for character, _ in _LINE_ENDS if len(character) > size}) for size in (1, 2)
}


def data_of(content: Any) -> bytes:
    """Returns the JSON of a content, without any character that somebody takes for the end of a line."""
    return escape_line_ends(orjson.dumps(content))


def escape_line_ends(json: bytes) -> bytes:
    """Returns the JSON with those characters escaped: outside of texts it has none."""
    for character, escape in _LINE_ENDS:
        if character in json:
            json = json.replace(character, escape)
    return json


class LineEndEscaper:
    """Escapes those characters in a stream of somebody else's, whose chunks may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Returns what can be sent on."""
        data = self._rest + chunk
        size = next((size for size in (2, 1) if data.endswith(_BEGINNINGS[size])), 0)
        data, self._rest = data[: len(data) - size], data[len(data) - size :]
        return escape_line_ends(data)

    def close(self) -> bytes:
        """Returns what is left."""
        rest, self._rest = self._rest, b""
        return rest


def frame(content: Any, event: str = "") -> bytes:
    """Returns a content as an event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + data_of(content) + b"\n\n"
