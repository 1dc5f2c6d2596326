"""The output of a call: masked, bounded and numbered as it comes, read by any number while it is written.

    runner's pieces -> mask -> pieces, numbered from 1 -> readers in this process, rows for other replicas, the receipt

The numbers are the same wherever they are read: the receipt keeps how both streams were interleaved.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from services.tool_runner.core.job import Output, Result
from services.tool_runner.core.model import Ending, Receipt
from services.tool_runner.core.storable import storable

Stream = Literal["stdout", "stderr"]

# A tool that prints letter by letter: pieces are gathered for so long, ...
_PAUSE_SECONDS = 0.02
# ... and once there are so many, longer, one piece for each stream.
_MOST_PIECES = 1_000
_LONG_PAUSE_SECONDS = 1.0
_NUMBERS: dict[Stream, int] = {"stdout": 1, "stderr": 2}
_STREAMS: dict[int, Stream] = {number: stream for stream, number in _NUMBERS.items()}


class Masking(Protocol):
    """Masks one stream; a secret may be cut in two by its pieces. See `core.masking`."""

    def feed(self, text: str) -> str: ...

    def finish(self) -> str: ...


class CallOutput:
    """The output of one call so far. `capture`: bytes that are kept of each stream."""

    def __init__(self, capture: int, stdout: Masking, stderr: Masking) -> None:
        self.pieces: list[Output] = []
        self._capture = capture
        self._masks: dict[Stream, Masking] = {"stdout": stdout, "stderr": stderr}
        self._left: dict[Stream, int] = dict.fromkeys(_NUMBERS, capture)
        # Characters that came, kept or not.
        self._came: dict[Stream, int] = dict.fromkeys(_NUMBERS, 0)
        self._pending: list[tuple[Stream, str]] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._flushed_at = float("-inf")
        self._changed = asyncio.Event()
        self._ended = False

    def add(self, output: Output) -> None:
        """Adds a piece as its runner gives it; the number is made anew."""
        if self._ended:
            return
        self._came[output.stream] += len(output.text)
        self._put(output.stream, self._masks[output.stream].feed(self._within(output.stream, storable(output.text))))
        self._flush_soon()

    def end(self, result: Result | None = None) -> None:
        """Ends the output with the rest that `result` has of the streams. Idempotent."""
        if self._ended:
            return
        for stream in _NUMBERS:
            text = getattr(result, stream)[self._came[stream] :] if result else ""
            masked = self._masks[stream].feed(self._within(stream, storable(text))) + self._masks[stream].finish()
            cut = self._left[stream] <= 0
            self._put(stream, f"{masked}\n... (cut at {self._capture} bytes)" if cut else masked)
        self._flush()
        self._ended = True
        self._tell()

    def complete(self, ending: Ending) -> Ending:
        """Returns the ending with all that was printed; `end` comes before."""
        return with_output(ending, self.pieces)

    async def after(self, sequence: int) -> AsyncGenerator[Output]:
        """Yields every piece after this number, until the end."""
        while True:
            changed = self._changed
            while sequence < len(self.pieces):
                yield self.pieces[sequence]
                sequence += 1
            if self._ended:
                return
            await changed.wait()

    def _within(self, stream: Stream, text: str) -> str:
        data = text.encode()
        left = self._left[stream]
        self._left[stream] = max(0, left - len(data))
        return text if len(data) <= left else data[:left].decode("utf-8", "ignore")

    def _put(self, stream: Stream, text: str) -> None:
        if not text:
            return
        if self._pending and self._pending[-1][0] == stream:
            text = self._pending.pop()[1] + text
        self._pending.append((stream, text))

    def _flush_soon(self) -> None:
        if self._flushing or not self._pending:
            return
        loop = asyncio.get_running_loop()
        pause = _PAUSE_SECONDS if len(self.pieces) < _MOST_PIECES else _LONG_PAUSE_SECONDS
        wait = self._flushed_at + pause - loop.time()
        if wait <= 0:
            self._flush()
        else:
            self._flushing = loop.call_later(wait, self._flush)

    def _flush(self) -> None:
        if self._flushing:
            self._flushing.cancel()
            self._flushing = None
        if len(self.pieces) + len(self._pending) > _MOST_PIECES:
            joined = {stream: "".join(text for name, text in self._pending if name == stream) for stream in _NUMBERS}
            self._pending = [(stream, text) for stream, text in joined.items() if text]
        for stream, text in self._pending:
            self.pieces.append(Output(len(self.pieces) + 1, stream, text))
        self._pending = []
        self._flushed_at = asyncio.get_running_loop().time()
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def with_output(ending: Ending, pieces: Sequence[Output]) -> Ending:
    """Returns the ending of a call that printed these."""
    texts = {name: "".join(piece.text for piece in pieces if piece.stream == name) for name in _NUMBERS}
    order = tuple((_NUMBERS[piece.stream], len(piece.text)) for piece in pieces)
    return replace(ending, stdout=texts["stdout"], stderr=texts["stderr"], output_order=order)


def pieces_of(receipt: Receipt) -> list[Output]:
    """Returns the pieces of a call that ended, as they were."""
    place = dict.fromkeys(_STREAMS, 0)
    pieces: list[Output] = []
    for number, characters in receipt.output_order:
        stream, start = _STREAMS[number], place[number]
        place[number] += characters
        pieces.append(Output(len(pieces) + 1, stream, getattr(receipt, stream)[start : start + characters]))
    return pieces
