"""How far a stream was read, so that it can be gone on with and nothing is told twice. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cli.streaming.sse import Frame


@dataclass
class Place:
    """The reader's place in one run.

    after: every chunk up to this number was read; it is what the server is asked to go on after.
    """

    run_id: str = ""
    after: int = 0
    # Of the event that was being read: its number, and how many of its chunks were told.
    _partly: int = 0
    _told: int = 0
    # Of those, how many come again.
    _known: int = 0

    def broke_off(self) -> None:
        """The connection was lost: what comes next begins after `after`."""
        self._known = self._told

    def is_news(self, frame: Frame, seq_id: int | None) -> bool:
        """Whether a chunk was not told before. The last chunk of an event has its number as `id`."""
        if seq_id is None:
            return True
        if seq_id <= self.after:
            return False
        if seq_id != self._partly:
            self._partly, self._told, self._known = seq_id, 0, 0
        news = self._known == 0
        if news:
            self._told += 1
        else:
            self._known -= 1
        if frame.id is not None:
            self.after = max(self.after, frame.id)
        return news
