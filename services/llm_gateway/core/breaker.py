"""The circuit breaker of an endpoint: when it is left alone, and when it is tried again. Pure: times come from the
caller.

Closed, all calls go. It opens after IN_A_ROW failures without a success between, or when more than half of the last
OF_THE_LAST outcomes within WITHIN_SECONDS are failures. Open, none goes for a cool-down, which doubles each time from
FIRST_SECONDS to LONGEST_SECONDS. Then one goes as a probe: an answer closes it, a failure opens it again.
"""

from collections import deque
from enum import Enum, auto

IN_A_ROW = 5
OF_THE_LAST = 20
WITHIN_SECONDS = 60.0
FIRST_SECONDS = 5.0
LONGEST_SECONDS = 60.0
# How long calls wait that come while a probe is out.
_PROBE_SECONDS = 1.0


class Outcome(Enum):
    """The outcome of a call, as far as it says something of the endpoint."""

    # It began to answer.
    ANSWERED = auto()
    # It could not be reached, was silent for too long, or failed (5xx).
    FAILED = auto()
    # It answered that this one request cannot be: the endpoint lives.
    REFUSED = auto()
    # The caller went before anything came.
    LEFT = auto()


class Breaker:
    """The breaker of one endpoint. `opened` counts how often it opened, `in_a_row` failures since the last answer."""

    def __init__(self) -> None:
        self.opened = 0
        self.in_a_row = 0
        self._outcomes: deque[tuple[float, bool]] = deque(maxlen=OF_THE_LAST)
        self._until: float | None = None
        self._cool_down = FIRST_SECONDS
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Returns whether it is not closed."""
        return self._until is not None

    def blocked(self, now: float) -> float | None:
        """Returns the seconds after which to ask again; None: a call may go."""
        if self._until is None:
            return None
        if now < self._until:
            return self._until - now
        return _PROBE_SECONDS if self._probing else None

    def begin(self) -> bool:
        """Lets a call go, where it may; returns whether it is the probe."""
        if self._until is None:
            return False
        self._probing = True
        return True

    def end(self, outcome: Outcome, now: float, *, probe: bool) -> None:
        """Counts the outcome of that call."""
        if probe:
            self._probing = False
            if outcome is Outcome.FAILED:
                self._cool_down = min(2 * self._cool_down, LONGEST_SECONDS)
                self._open(now)
            elif outcome is not Outcome.LEFT:
                self._close()
        elif not self.is_open and outcome in (Outcome.ANSWERED, Outcome.FAILED):
            self._note(outcome is Outcome.FAILED, now)

    def _note(self, failed: bool, now: float) -> None:
        self.in_a_row = self.in_a_row + 1 if failed else 0
        self._outcomes.append((now, failed))
        if failed and (self.in_a_row >= IN_A_ROW or self._mostly_fails(now)):
            self._open(now)

    def _mostly_fails(self, now: float) -> bool:
        recent = [failed for at, failed in self._outcomes if now - at <= WITHIN_SECONDS]
        return len(recent) == OF_THE_LAST and 2 * sum(recent) > OF_THE_LAST

    def _open(self, now: float) -> None:
        self._until = now + self._cool_down
        self.opened += 1

    def _close(self) -> None:
        self._until, self._cool_down, self.in_a_row = None, FIRST_SECONDS, 0
        self._outcomes.clear()
