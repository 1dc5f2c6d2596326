"""The positions of a run's events under one fence; see events.py."""

from services.agent.core.events import first_sequence

# Of an owner's events at most so many are deltas; what is durable has the positions after them to itself.
MOST_DELTAS = 900_000


class Positions:
    """Gives positions out, rising."""

    def __init__(self, fence: int) -> None:
        self._next = first_sequence(fence)
        self._deltas_end = self._next + MOST_DELTAS

    @property
    def may_show(self) -> bool:
        """Returns whether there is a position left for a delta."""
        return self._next < self._deltas_end

    def next(self, count: int = 1) -> int:
        """Returns the first of `count` positions."""
        self._next += count
        return self._next - count
