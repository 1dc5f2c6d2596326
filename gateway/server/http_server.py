"""The listening socket and uvicorn, run like the services' gRPC servers: started, drained, stopped."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from gateway.server.http_protocol import BoundedHeads
from gateway.settings import MEBIBYTE
from services.common.server import GRACE_SECONDS
from services.common.settings import SettingsError

# Above what load balancers and the SDKs' connection pools keep, so that they close first.
_KEEP_ALIVE_SECONDS = 75


class _Uvicorn(uvicorn.Server):
    """Without signal handlers of its own: the process has one place for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Socket(WebSocketsSansIOProtocol):
    """A WebSocket that can be closed although its peer does not read: uvicorn's would wait for it, for ever."""

    ends_stream = False

    @property
    def still_sends(self) -> bool:
        """Returns whether the client is in the middle of what is refused: a message that is too large, or none."""
        return self.conn.parser_exc is not None

    async def send(self, message: Any) -> None:
        """Sends one ASGI message."""
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(2 * self.close_timeout, self.transport.abort)
        await super().send(message)


class HttpServer:
    """Serves an ASGI application on a socket that is bound when this is made, or was inherited as `listen_fd`."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        listen_fd: int | None = None,
        grace: int = int(GRACE_SECONDS),
        max_body_bytes: int = 32 * MEBIBYTE,
    ) -> None:
        self._socket = _bind(host, port) if listen_fd is None else socket.socket(fileno=listen_fd)
        # For all that it accepts: an answer's second piece does not wait 40 ms for the acknowledgement of its first.
        # asyncio does this only where a socket was made for TCP by name, and `create_server` does not.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=BoundedHeads,
            ws=_Socket,
            # What is a little too large is told so; what is more ends the socket (1009) before it is held.
            ws_max_size=max_body_bytes + MEBIBYTE,
            # Its windows would cost more memory than all else that a quiet socket holds.
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=grace,
        )
        self._uvicorn = _Uvicorn(config)
        self._stopped = asyncio.Event()

    async def serve(self) -> None:
        """Serves until `stop`."""
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            self._stopped.set()

    async def stop(self) -> None:
        """Refuses new connections and returns when requests have ended, or been cut after `grace` seconds."""
        self._uvicorn.should_exit = True
        await self._stopped.wait()


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SettingsError(
            f"nothing can listen on {host}:{port} ({reason}); stop what holds it, or set LOCI_HOST and LOCI_PORT, "
            f"for example LOCI_PORT={port + 1}"
        ) from None
