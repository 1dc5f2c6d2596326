"""Newline-delimited JSON, cut into its lines from the bytes of a response. Pure.

Lines end with LF or CRLF; empty ones are skipped. Chunks may end anywhere.
"""

from services.common.core.json_text import parse_pieces

# Of one line, in bytes.
MOST_OF_LINE = 16 * 1024 * 1024


class NdjsonParser:
    """The parser of one response; it is fed the chunks."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        # Grows in place: a long line may come byte by byte.
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Returns the lines that are complete with this chunk. Raises ValueError for one that is too long."""
        if b"\n" not in chunk:
            self._rest += chunk
            if len(self._rest) > MOST_OF_LINE:
                raise ValueError(f"a line is longer than {MOST_OF_LINE:,} bytes")
            return []
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in map(bytes.strip, lines) if line]

    def close(self) -> list[bytes]:
        """Returns the last line where only its end is missing; half a line is none: the stream broke off there."""
        rest, self._rest = bytes(self._rest).strip(), bytearray()
        try:
            parse_pieces(rest)
        except ValueError:
            return []
        return [rest]
