"""A gate that holds replies back until a test opens it: order by events, where a delay would be a race."""

import threading


class Gate:
    """For a reply's `gate`. Any thread may open it and wait at it; what is opened stays open."""

    def __init__(self) -> None:
        self._reached, self._opened = threading.Event(), threading.Event()

    @property
    def is_open(self) -> bool:
        """Returns whether it was opened."""
        return self._opened.is_set()

    @property
    def is_reached(self) -> bool:
        """Returns whether a reply was ever held back here."""
        return self._reached.is_set()

    def open(self) -> None:
        """Lets pass what waits here, and all that comes."""
        self._opened.set()

    def reach(self) -> None:
        """Notes that a reply is here; the fake calls it."""
        self._reached.set()

    def wait_reached(self, seconds: float = 30.0) -> None:
        """Waits until a reply is held back. Raises AssertionError when none came in so many seconds."""
        assert self._reached.wait(seconds), "no reply came to the gate"
