"""The target of a request to the proxy, and requests that are refused."""

import ipaddress
import re
from collections.abc import Iterable

from services.common.core.addresses import AddressRefused
from services.tool_runner.core.network_policy import canonical
from services.tool_runner.egress.destinations import Origin

_ABSOLUTE = re.compile(rb"(https?)://([^/?#\\@]+)(/[^#]*|\?[^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@]+)(?::(\d{1,5}))?", re.IGNORECASE)


def check(method: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises Refused for a request whose end is not plain, or that asks to be shown what it says."""
    names = [name for name, _ in headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise AddressRefused("a request has either a content-length or a transfer-encoding")
    if method in {b"TRACE", b"CONNECT"}:
        raise AddressRefused(f"{method.decode()} is not passed on")


def absolute(target: bytes) -> tuple[str, int, bytes]:
    """Returns host, port and origin-form of `http://host/path`. Raises Refused."""
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise AddressRefused("this is a proxy: ask it for http://host/path, or CONNECT host:443")
    if match[1].lower() != b"http":
        raise AddressRefused("https:// goes through the proxy by CONNECT")
    host, port = _split(match[2])
    path = match[3] or b"/"
    return host, port or 80, path if path.startswith(b"/") else b"/" + path


def authority(target: bytes) -> tuple[str, int]:
    """Returns host and port of a CONNECT. Raises Refused."""
    host, port = _split(target)
    if port is None:
        raise AddressRefused("CONNECT needs a port: host:443")
    return host, port


def within(target: bytes, headers: Iterable[tuple[bytes, bytes]], tunnel: Origin) -> bytes:
    """Returns the target of a request in a tunnel, which must be for the tunnel's host. Raises Refused."""
    if not target.startswith(b"/") and target != b"*":
        raise AddressRefused("within a tunnel a request asks for a path")
    text_shown = "loci" if tunnel.is_loci else tunnel.host
    for name, value in headers:
        if name == b"host":
            host, port = _split(value)
            if host != text_shown or (port is not None and not tunnel.is_loci and port != tunnel.port):
                raise AddressRefused(f"this tunnel leads to {text_shown}, and the request is for {host}")
    return target


def is_here(host: str) -> bool:
    """Returns whether a canonical host is this machine, by its name alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(text: bytes) -> tuple[str, int | None]:
    text_shown = text.decode("latin-1")
    match = _AUTHORITY.fullmatch(text_shown)
    host = canonical(match[1]) if match else None
    if match is None or host is None:
        raise AddressRefused(f"{text_shown[:80]!r} is not the name of a host, nor an address in its usual form")
    port = None if match[2] is None else int(match[2])
    if port is not None and not 0 < port < 65_536:
        raise AddressRefused(f"{port} is not a port")
    return host, port
