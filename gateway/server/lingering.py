"""The end of a connection whose client still sends: it gets to read the last answer.

A connection that is closed before everything was read is reset, and takes along what was sent last: the client sees a
broken connection instead of the reason. So what still comes is dropped for a while before the connection is closed
(RFC 9112, 9.6).
"""

import asyncio
from typing import Any

# For all that still comes, and for a pause in it.
LINGER_SECONDS, QUIET_SECONDS = 5.0, 1.0


class LingeringTransport:
    """A transport that is closed in this way where its protocol says `still_sends`.

    `ends_stream` of the protocol: its client reads to the end of the stream. One of a WebSocket has a frame for that,
    and would take the end for a failure of its own sending.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._lingers = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Returns whether it was closed."""
        return self._lingers or self._transport.is_closing()

    def close(self) -> None:
        """Closes it once what was written is sent. Idempotent."""
        if self.is_closing():
            return
        protocol = self._transport.get_protocol()
        if not protocol.still_sends:
            self._transport.close()
            return
        self._lingers = True
        self._transport.set_protocol(_Drain(protocol, self._transport, self._loop))
        if protocol.ends_stream and self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()


class _Drain(asyncio.Protocol):
    """Drops what comes. Its connection still is that of `protocol`, which hears of its end."""

    def __init__(self, protocol: Any, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._protocol = protocol
        self._transport = transport
        self._loop = loop
        self._end = loop.call_later(LINGER_SECONDS, transport.abort)
        self._quiet = loop.call_later(QUIET_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """The client still sends."""
        self._quiet.cancel()
        self._quiet = self._loop.call_later(QUIET_SECONDS, self._transport.close)

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left, or its time is over."""
        self._end.cancel()
        self._quiet.cancel()
        self._protocol.connection_lost(exc)
