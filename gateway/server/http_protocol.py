"""uvicorn's HTTP protocol, with an end to heads of requests: nobody has shown a credential before one is whole."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from gateway.server.lingering import LingeringTransport

# Above all that clients and proxies send. Trailers count like heads, and reach nobody.
MOST_BYTES = 128 * 1024
# For a head to come, from its first byte on or from the connection's beginning.
MOST_SECONDS = 60.0
_TOO_LARGE = f"The head of the request is larger than {MOST_BYTES // 1024} KiB."
_TOO_LATE = "The head of the request did not come in time."


class BoundedHeads(HttpToolsProtocol):
    """A connection that is closed where a head is too large (400), stops half-way (408) or does not come."""

    ends_stream = True
    _timer: asyncio.TimerHandle | None = None
    # Read since something of a request was whole.
    _unread = 0
    _in_body = False
    _in_request = False

    @property
    def still_sends(self) -> bool:
        """Returns whether the client is in the middle of a request."""
        return self._in_request or self._unread > 0

    def connection_made(self, transport: Any) -> None:
        """The client has connected."""
        super().connection_made(LingeringTransport(transport, self.loop))  # type: ignore[arg-type]
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._forget_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._unread += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._unread > MOST_BYTES:
            self.send_400_response(_TOO_LARGE)
        elif self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_body, self._in_request = False, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header is there, or a trailer."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._unread, self._in_body = 0, True
        self._forget_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body is there."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unread, self._in_request = 0, False
        super().on_message_complete()

    def _await_head(self) -> None:
        self._forget_head()
        self._timer = self.loop.call_later(MOST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self._unread:
            head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[408] + head % len(_TOO_LATE) + _TOO_LATE.encode())
        self.transport.close()

    def _forget_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
