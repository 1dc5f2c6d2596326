"""The proxy's door: what the tool connects to at 127.0.0.1:8118 leaves the sandbox as frames, and comes back so.

Neither direction holds more than a window of a connection. Each side says CLOSE once, and forgets when it heard it.
"""

import contextlib
import os
import select
import socket
from collections.abc import Callable, Iterator

from .frames import BYTES, CHUNK, CLOSE, MOST_CONNECTIONS, OPEN, WINDOW, WINDOW_BYTES, Wire

ADDRESS = ("127.0.0.1", 8118)
_GIVE_BACK = WINDOW_BYTES // 4
_USUAL_CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
_OWN_CERTIFICATES = "/tmp/loci-certificates.pem"
_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_CERTIFICATE_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
Door = tuple[int, int, Callable[[int], None]]


class _Connection:
    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.may_send = WINDOW_BYTES
        self.pending = bytearray()  # for the tool
        self.taken = 0  # of what came for the tool, not yet given back as window
        self.tool_ended = False
        self.runner_ended = False
        self.runner_closed = False


class Relay:
    """The connections of one worker. Ids are never used twice."""

    def __init__(self, wire: Wire, address: tuple[str, int] = ADDRESS) -> None:
        self._wire = wire
        self._address = address
        self._listener: socket.socket | None = None
        self._open: dict[int, _Connection] = {}
        self._closing: set[int] = set()
        self._last = 0

    def listen(self) -> None:
        """Opens the door; raises OSError."""
        self._listener = socket.create_server(self._address, backlog=MOST_CONNECTIONS)
        self._listener.setblocking(False)

    def stop(self) -> None:
        """Ends the call: the runner has forgotten every connection."""
        if self._listener:
            self._listener.close()
        for connection in self._open.values():
            connection.socket.close()
        self._listener, self._open, self._closing = None, {}, set()

    def doors(self) -> Iterator[Door]:
        """Yields what is to be waited for: (descriptor, poll mask, what to do then)."""
        room = not self._wire.full
        if self._listener and room and len(self._open) + len(self._closing) < MOST_CONNECTIONS:
            yield self._listener.fileno(), select.POLLIN, self._accept
        for identity, connection in self._open.items():
            reads = room and connection.may_send > 0 and not connection.tool_ended
            mask = (select.POLLIN if reads else 0) | (select.POLLOUT if connection.pending else 0)
            if mask:
                yield connection.socket.fileno(), mask, self._mover(identity)

    def take(self, kind: int, body: bytes) -> None:
        """Takes a frame of the runner about a connection; one that is gone already is nobody's."""
        identity, rest = int.from_bytes(body[:4], "big"), body[4:]
        if kind == CLOSE:
            self._closing.discard(identity)
        connection = self._open.get(identity)
        if connection is None:
            return
        if kind == WINDOW:
            connection.may_send += int.from_bytes(rest, "big")
        elif kind == BYTES and rest:
            connection.pending += rest
        else:
            connection.runner_ended = True
            connection.runner_closed |= kind == CLOSE
            self._settle(identity, connection)

    def _accept(self, _: int) -> None:
        assert self._listener
        with contextlib.suppress(OSError):
            accepted, _address = self._listener.accept()
            accepted.setblocking(False)
            self._last += 1
            self._open[self._last] = _Connection(accepted)
            self._wire.send(OPEN, _id(self._last))

    def _mover(self, identity: int) -> Callable[[int], None]:
        def move(event: int) -> None:
            connection = self._open.get(identity)
            if connection is None:
                return
            try:
                if event & select.POLLOUT:
                    self._to_tool(identity, connection)
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    self._from_tool(identity, connection)
            except BlockingIOError:
                return
            except OSError:
                self._close(identity, connection)
                return
            self._settle(identity, connection)

        return move

    def _from_tool(self, identity: int, connection: _Connection) -> None:
        if connection.tool_ended or not connection.may_send:
            return
        data = connection.socket.recv(min(CHUNK, connection.may_send))
        connection.tool_ended = not data
        connection.may_send -= len(data)
        self._wire.send(BYTES, _id(identity), data)

    def _to_tool(self, identity: int, connection: _Connection) -> None:
        written = connection.socket.send(connection.pending)
        del connection.pending[:written]
        connection.taken += written
        if connection.taken >= _GIVE_BACK or not connection.pending:
            self._wire.send(WINDOW, _id(identity), connection.taken.to_bytes(4, "big"))
            connection.taken = 0

    def _settle(self, identity: int, connection: _Connection) -> None:
        """Passes an end on once everything before it is through."""
        if connection.pending or not connection.runner_ended:
            return
        if connection.tool_ended or connection.runner_closed:
            self._close(identity, connection)
        else:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_WR)

    def _close(self, identity: int, connection: _Connection) -> None:
        connection.socket.close()
        del self._open[identity]
        self._wire.send(CLOSE, _id(identity))
        if not connection.runner_closed:
            self._closing.add(identity)


def _id(identity: int) -> bytes:
    return identity.to_bytes(4, "big")


def environment(*, network: bool, authority: str) -> dict[str, str]:
    """Returns the variables that lead through the door, and to the certificates that are to be trusted behind it."""
    if not network:
        return {}
    names = dict.fromkeys(_PROXY_NAMES, f"http://{ADDRESS[0]}:{ADDRESS[1]}") | {"NO_PROXY": "", "no_proxy": ""}
    usual = next(filter(os.path.isfile, _USUAL_CERTIFICATES), "")
    if not authority:
        return names | (dict.fromkeys(_CERTIFICATE_NAMES, usual) if usual else {})
    with open(_OWN_CERTIFICATES, "w") as file:
        if usual:
            with open(usual) as source:
                file.write(source.read() + "\n")
        file.write(authority)
    return names | dict.fromkeys(_CERTIFICATE_NAMES, _OWN_CERTIFICATES)
