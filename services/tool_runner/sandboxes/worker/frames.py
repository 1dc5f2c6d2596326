"""Frames on stdin and stdout, as the runner's `wire.py` has them; this package stands alone, so it says them again."""

import os
from collections.abc import Iterator

VERSION = 2
HELLO, JOB, FILE, DATA, GO, OUTPUT, OPEN, BYTES, WINDOW, CLOSE, INPUT, ANSWER = range(1, 13)
CHUNK = 64 * 1024
WINDOW_BYTES = 256 * 1024
MOST_CONNECTIONS = 64
_HEADER = 5
_FULL = 256 * 1024  # of what waits to be read by the runner, before the tool has to wait, too


class StreamEnded(Exception):
    """The runner is gone."""


class Wire:
    """Both directions, neither of which blocks."""

    def __init__(self, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self._in = bytearray()
        self._out = bytearray()
        os.set_blocking(source, False)
        os.set_blocking(target, False)

    @property
    def waiting(self) -> bool:
        """Returns whether something is still to be written."""
        return bool(self._out)

    @property
    def full(self) -> bool:
        """Returns whether so much waits that nothing more should come."""
        return len(self._out) > _FULL

    def send(self, kind: int, *parts: bytes) -> None:
        """Takes a frame; `write` brings it away."""
        self._out += bytes((kind,)) + sum(map(len, parts)).to_bytes(4, "big")
        for part in parts:
            self._out += part

    def write(self) -> None:
        """Writes what can be written now."""
        while self._out:
            try:
                written = os.write(self.target, memoryview(self._out)[: 1 << 20])
            except BlockingIOError:
                return
            except OSError as error:
                raise StreamEnded from error
            del self._out[:written]

    def read(self) -> None:
        """Takes what is there; raises StreamEnded at the end."""
        try:
            chunk = os.read(self.source, 1 << 18)
        except BlockingIOError:
            return
        except OSError as error:
            raise StreamEnded from error
        if not chunk:
            raise StreamEnded
        self._in += chunk

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yields those that have come whole, each once."""
        while len(self._in) >= _HEADER:
            end = _HEADER + int.from_bytes(self._in[1:_HEADER], "big")
            if len(self._in) < end:
                return
            kind, body = self._in[0], bytes(memoryview(self._in)[_HEADER:end])
            del self._in[:end]
            yield kind, body
