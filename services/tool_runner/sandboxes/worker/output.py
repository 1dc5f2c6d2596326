"""The output of the tool's processes: sent on while they run, as much of it as is wanted."""

import contextlib
import os
import select
from collections.abc import Iterator
from typing import Any

from .frames import CHUNK, OUTPUT, Wire
from .relay import Door

STREAMS = {1: "stdout", 2: "stderr"}


class OutputCapture:
    """Reads the pipes of one call. `limits` None: everything is wanted (a program that is spoken to)."""

    def __init__(self, wire: Wire, pipes: dict[int, int], limits: dict[str, Any] | None) -> None:
        self._wire = wire
        self._pipes = pipes
        self._limits = limits
        self._sent = dict.fromkeys(pipes, 0)
        self._sequence = 0
        self.printed = 0

    @property
    def truncated(self) -> bool:
        """Returns whether more was printed than sent."""
        return self.printed > sum(self._sent.values())

    @property
    def flooded(self) -> bool:
        """Returns whether more was printed than a tool may."""
        return self._limits is not None and self.printed > self._limits["flood"]

    def doors(self) -> Iterator[Door]:
        """See `relay.Relay.doors`."""
        if not self._wire.full:
            for stream, pipe in list(self._pipes.items()):
                yield pipe, select.POLLIN, lambda _, stream=stream: self._take(stream)  # type: ignore[misc]

    def drain(self) -> None:
        """Takes what is left in the pipes; nobody writes to them any more."""
        for stream in list(self._pipes):
            while not self.flooded and self._take(stream):
                pass

    def close(self) -> None:
        """Gives the pipes up."""
        for pipe in self._pipes.values():
            os.close(pipe)
        self._pipes = {}

    def _take(self, stream: int) -> bool:
        """Returns whether there was something."""
        pipe = self._pipes.get(stream)
        if pipe is None:
            return False
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(pipe, CHUNK)
            if chunk:
                self._pass(stream, chunk)
                return True
            os.close(self._pipes.pop(stream))
        return False

    def _pass(self, stream: int, chunk: bytes) -> None:
        self.printed += len(chunk)
        room = self._limits["capture"] - self._sent[stream] if self._limits else len(chunk)
        kept = chunk[: max(0, room)]
        if kept:
            self._sequence += 1
            self._sent[stream] += len(kept)
            self._wire.send(OUTPUT, self._sequence.to_bytes(4, "big"), bytes((stream,)), kept)
