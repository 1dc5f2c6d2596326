"""Calls to addresses that users supply: checked, resolved, and made to exactly the address that was checked.

A name is resolved once for each request, every address it has must be one that may be called, and the connection goes
to one of those: whoever answers differently the next time gains nothing. Redirects, where a client follows them, come
through the transport again and are checked like the first address. Proxies of the environment are not used.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Sequence
from functools import cache

import httpx

LONGEST_URL = 2_048
ALLOW = "LOCI_ALLOW_PRIVATE_URLS"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# What is not the open internet, by IANA's registries of special-purpose addresses (RFC 6890). Not `is_global`, whose
# answers differ between releases of Python.
_SPECIAL_RANGES = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
"""
_SPECIAL = [ipaddress.IPv4Network(network) for network in _SPECIAL_RANGES.split()]
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SPECIAL_UNICAST = [ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Addresses that one name may have and that are tried.
_MOST_TRIED = 4
_NAME = re.compile(r"(?=.{1,254}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*\.?", re.IGNORECASE)


class Refused(Exception):
    """The address is not one that may be called; the text is a sentence for whoever supplied it."""


def check_url(url: str, *, allow_private: bool) -> httpx.URL:
    """The parsed URL, judged by its text alone. Raises Refused.

    https, without a user or password. With `allow_private` also http to this machine, and private addresses.
    """
    if len(url) > LONGEST_URL:
        raise Refused(f"the URL is longer than {LONGEST_URL} characters")
    try:
        parsed = httpx.URL(url)
        host, port = _host(parsed), parsed.port
    except (httpx.InvalidURL, UnicodeError):
        raise Refused("this is not a URL; expected for example https://example.com/hook") from None
    if parsed.scheme not in {"https", "http"} or not host:
        raise Refused("the URL must begin with https:// and name a host")
    if parsed.userinfo:
        raise Refused("the URL must not hold a user name or password")
    literal = _literal(host)
    if literal is None and not _NAME.fullmatch(host):
        raise Refused(f"{host[:80]!r} is not the name of a host")
    if port is not None and not 0 < port < 65_536:
        raise Refused(f"{port} is not a port")
    if parsed.scheme == "http" and not (allow_private and _names_this_machine(host)):
        raise Refused(f"the URL must begin with https:// (http:// only to this machine, where {ALLOW}=1 is set)")
    if literal is not None:
        _check_address(parsed, literal, allow_private=allow_private)
    elif not allow_private and host.rstrip(".").lower().rpartition(".")[2] == "localhost":
        raise _private(host)
    return parsed


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet, also when it is written within another (RFC 4291, 3056, 6052)."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL)
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_UNICAST)


class OutwardTransport(httpx.AsyncBaseTransport):
    """Sends a request to an address that was checked. Raises httpx.ConnectError (from Refused) for any other."""

    def __init__(self, *, allow_private: bool, trusted: ssl.SSLContext | None = None) -> None:
        self._allow_private = allow_private
        # No connection is kept: one to the same address may have been made for another name.
        self._inner = httpx.AsyncHTTPTransport(
            verify=trusted or _trusted(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the first address that accepts a connection."""
        url, host = request.url, _host(request.url)
        try:
            addresses = await self._addresses(url)
        except Refused as refused:
            raise httpx.ConnectError(str(refused), request=request) from refused
        request.extensions = {**request.extensions, "sni_hostname": host}
        for place, address in enumerate(addresses, start=1):
            # The Host header was made from the name, and stays.
            request.url = url.copy_with(host=str(address))
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if place == len(addresses):
                    raise
            else:
                return response
            finally:
                request.url = url
        raise httpx.ConnectError(f"{host} has no address", request=request)

    async def aclose(self) -> None:
        """Closes what is open."""
        await self._inner.aclose()

    async def _addresses(self, url: httpx.URL) -> Sequence[Address]:
        checked = check_url(str(url), allow_private=self._allow_private)
        found = await resolve(_host(checked))
        for address in found:
            _check_address(checked, address, allow_private=self._allow_private)
        return found[:_MOST_TRIED]


def outward_client(*, allow_private: bool, timeout: float) -> httpx.AsyncClient:
    """A client for addresses that users supply. It follows no redirect unless a request says so; seconds."""
    return httpx.AsyncClient(
        transport=OutwardTransport(allow_private=allow_private),
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
    )


async def resolve(host: str) -> list[Address]:
    """The addresses of a name, each once. Raises Refused when it has none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Refused(f"{host} cannot be resolved") from None
    return list(dict.fromkeys(ipaddress.ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found))


@cache
def _trusted() -> ssl.SSLContext:
    """The usual authorities, or those of SSL_CERT_FILE; made once, because that takes 20 ms."""
    return httpx.create_ssl_context()


def _check_address(url: httpx.URL, address: Address, *, allow_private: bool) -> None:
    if url.scheme == "http" and not _plain(address).is_loopback:
        raise Refused(f"{url.host} is not this machine, so the URL must begin with https://")
    if not allow_private and not is_public(address):
        raise _private(url.host)


def _host(url: httpx.URL) -> str:
    """As it goes over the wire: a name in ASCII (IDNA), an address without brackets."""
    return url.raw_host.decode("ascii")


def _private(host: str) -> Refused:
    return Refused(f"{host} is not a public address; set {ALLOW}=1 on the server to allow it")


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a mapped, 6to4 or NAT64 address stands for."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _plain(address: Address) -> Address:
    return (_embedded(address) or address) if isinstance(address, ipaddress.IPv6Address) else address


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _names_this_machine(host: str) -> bool:
    literal = _literal(host)
    return host.rstrip(".").lower() == "localhost" if literal is None else _plain(literal).is_loopback
