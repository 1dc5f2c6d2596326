"""The connections of one worker, and what it may still send on each. Pure."""

from services.tool_runner.sandboxes.protocol.wire import MOST_CONNECTIONS, WINDOW_BYTES


class BadWorker(ValueError):
    """The worker breaks its protocol."""


class Connections:
    """Each is here until both sides said CLOSE; ids rise over all calls of a worker."""

    def __init__(self) -> None:
        self._allowed = False
        self._last = 0
        self._may_send: dict[int, int] = {}
        self._forgotten: set[int] = set()  # we said CLOSE
        self._closed: set[int] = set()  # it did

    def begin(self, *, allowed: bool) -> None:
        """Begins a call."""
        self._allowed = allowed

    def end(self) -> None:
        """Ends the call, and every connection."""
        self._allowed = False
        self._may_send, self._forgotten, self._closed = {}, set(), set()

    def open(self, connection: int) -> None:
        """Raises BadWorker for an id that is not the next one, and for one too many."""
        if not self._allowed or connection != self._last + 1 or len(self._may_send) >= MOST_CONNECTIONS:
            raise BadWorker("the sandbox opened a connection that it was not to open")
        self._last = connection
        self._may_send[connection] = WINDOW_BYTES

    def take_data(self, connection: int, size: int) -> bool:
        """Returns whether anybody still listens; raises BadWorker for more than the window."""
        self._connection(connection)
        self._may_send[connection] -= size
        if self._may_send[connection] < 0:
            raise BadWorker("the sandbox sent more on a connection than it was to send")
        return connection not in self._forgotten

    def take_window(self, connection: int) -> bool:
        """Returns whether anybody still sends."""
        self._connection(connection)
        return connection not in self._forgotten

    def give_back(self, connection: int, size: int) -> None:
        """Widens the window by what was taken of it."""
        if connection in self._may_send:
            self._may_send[connection] += size

    def take_close(self, connection: int) -> bool:
        """Takes its CLOSE; returns whether anybody is still to hear it."""
        self._connection(connection)
        self._closed.add(connection)
        return not self._drop(connection)

    def forget(self, connection: int) -> None:
        """Notes our CLOSE."""
        if connection in self._may_send:
            self._forgotten.add(connection)
            self._drop(connection)

    def _connection(self, connection: int) -> None:
        if connection not in self._may_send or connection in self._closed:
            raise BadWorker("the sandbox spoke of a connection that is not there")

    def _drop(self, connection: int) -> bool:
        """Drops it once both sides have closed."""
        gone = connection in self._forgotten and connection in self._closed
        if gone:
            del self._may_send[connection]
            self._forgotten.discard(connection)
            self._closed.discard(connection)
        return gone
