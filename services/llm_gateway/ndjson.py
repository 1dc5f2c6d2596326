"""Newline-delimited JSON, cut into its lines from the bytes of a response. Pure.

Lines end with LF or CRLF; empty ones are skipped. Chunks may end anywhere.
"""

import orjson


class NdjsonParser:
    """Feed it the chunks of one response."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that are complete with this chunk."""
        if b"\n" not in chunk:
            self._rest += chunk
            return []
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line for line in map(bytes.strip, lines) if line]

    def close(self) -> list[bytes]:
        """The last line where only its end is missing; half a line is none: the stream broke off there."""
        rest, self._rest = self._rest.strip(), b""
        try:
            orjson.loads(rest)
        except orjson.JSONDecodeError:
            return []
        return [rest]
