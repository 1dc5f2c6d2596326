"""Whether the ports that Loci is to listen on are free, asked before anything is started."""

from __future__ import annotations

import errno
import socket

from cli.errors import CliError
from cli.settings import RunSettings


def problem(host: str, port: int) -> str | None:
    """None when a server could listen there now, else why not."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror or error}"
    return None


def choose(settings: RunSettings) -> int | None:
    """The gRPC port; None when our own choice is taken. Raises CliError for a port that was asked for."""
    if why := problem(settings.host, settings.port):
        raise CliError(f"{settings.host} port {settings.port} {why}; set LOCI_PORT to a free one, e.g. LOCI_PORT=8300")
    why = problem(settings.host, settings.grpc_port)
    if why and not settings.grpc_port_is_ours:
        raise CliError(f"{settings.host} port {settings.grpc_port} {why}; set LOCI_GRPC_PORT to a free one")
    return None if why else settings.grpc_port
