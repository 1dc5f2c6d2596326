"""The position in a stream, to resume it without repeating an event. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cli.streaming.sse import Frame


@dataclass
class Cursor:
    """The reader's cursor in one run.

    after: every chunk up to this number was read; it is what the server is asked to go on after.
    """

    run_id: str = ""
    after: int = 0
    # Of the event that was being read: its number, and how many of its chunks were told.
    _current: int = 0
    _delivered: int = 0
    # Of those, how many come again.
    _repeated: int = 0

    def reconnect(self) -> None:
        """The connection was lost: what comes next begins after `after`."""
        self._repeated = self._delivered

    def is_new(self, frame: Frame, seq_id: int | None) -> bool:
        """Returns whether a chunk is new. The last chunk of an event has its number as `id`."""
        if seq_id is None:
            return True
        if seq_id <= self.after:
            return False
        if seq_id != self._current:
            self._current, self._delivered, self._repeated = seq_id, 0, 0
        news = self._repeated == 0
        if news:
            self._delivered += 1
        else:
            self._repeated -= 1
        if frame.id is not None:
            self.after = max(self.after, frame.id)
        return news
