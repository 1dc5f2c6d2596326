"""The ports that Loci listens on, checked before anything is started.

The REST port is the supervisor's own: the gateway inherits the listening socket, so that a client who comes while a
lost gateway is started again waits in the socket's queue instead of being refused.
"""

from __future__ import annotations

import errno
import socket

from cli.errors import CliError
from cli.settings import RunSettings


def problem(host: str, port: int) -> str | None:
    """Returns why a server could not listen there now, or None."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return _why(error)
    return None


def _why(error: OSError) -> str:
    return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"


def listen(settings: RunSettings) -> socket.socket:
    """Opens the listening socket of the REST port. Raises CliError when the port is taken."""
    host, port = settings.host, settings.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CliError(f"{host} port {port} {_why(error)}; set LOCI_PORT to a free one, e.g. LOCI_PORT=8300") from None


def choose_grpc_port(settings: RunSettings) -> int | None:
    """Returns the gRPC port; None when our own choice is taken. Raises CliError for one that the user set."""
    why = problem(settings.host, settings.grpc_port)
    if why and not settings.grpc_port_is_ours:
        raise CliError(f"{settings.host} port {settings.grpc_port} {why}; set LOCI_GRPC_PORT to a free one")
    return None if why else settings.grpc_port
