"""Calls to addresses that users supply: checked, resolved, and made to exactly the address that was checked.

A name is resolved once for each request, every address it has must be one that may be called, and the connection goes
to one of those: whoever answers differently the next time gains nothing. Redirects, where a client follows them, come
through the transport again and are checked like the first address. Proxies of the environment are not used.
"""

import re
import ssl
from collections.abc import Sequence
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from services.common.core import private_hosts
from services.common.core.addresses import (
    ALLOW,
    Address,
    AddressRefused,
    is_metadata,
    is_public,
    literal_address,
    unmap,
)
from services.common.core.private_hosts import Private, PrivateHosts, allows_all
from services.common.dns import resolve
from services.common.own_places import OWN

LONGEST_URL = 2_048
_PORTS = {"http": 80, "https": 443}
# Addresses that one name may have and that are tried.
_MOST_TRIED = 4
_NAME = re.compile(r"(?=.{1,254}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*\.?", re.IGNORECASE)


def check_url(url: str, *, allow_private: Private) -> httpx.URL:
    """Returns the parsed URL, judged by its text alone. Raises AddressRefused.

    https, without a user or password. With `allow_private` also http to this machine, and private addresses; or http
    to the hosts that it names, and their private addresses.
    """
    if len(url) > LONGEST_URL:
        raise AddressRefused(f"the URL is longer than {LONGEST_URL} characters")
    try:
        parsed = httpx.URL(url)
        host, port = _host(parsed), parsed.port
    except (httpx.InvalidURL, UnicodeError):
        raise AddressRefused("this is not a URL; expected for example https://example.com/hook") from None
    if parsed.scheme not in {"https", "http"} or not host:
        raise AddressRefused("the URL must begin with https:// and name a host")
    if parsed.userinfo:
        raise AddressRefused("the URL must not hold a user name or password")
    literal = literal_address(host)
    if literal is None and not _NAME.fullmatch(host):
        raise AddressRefused(f"{host[:80]!r} is not the name of a host")
    if port is not None and not 0 < port < 65_536:
        raise AddressRefused(f"{port} is not a port")
    here = allows_all(allow_private) and _names_this_machine(host)
    if parsed.scheme == "http" and not (here or _is_named(parsed, allow_private)):
        raise AddressRefused(f"the URL must begin with https:// ({_where_http(parsed, allow_private)})")
    if literal is not None:
        _check_address(parsed, literal, allow_private=allow_private)
    elif not _may_be_private(parsed, allow_private) and host.rstrip(".").lower().rpartition(".")[2] == "localhost":
        raise _private(parsed, allow_private)
    return parsed


class SafeTransport(httpx.AsyncBaseTransport):
    """Sends a request to an address that was checked. Raises httpx.ConnectError (from AddressRefused) for any other."""

    def __init__(self, *, allow_private: Private, trusted: ssl.SSLContext | None = None) -> None:
        self._allow_private = allow_private
        # No connection is kept: one to the same address may have been made for another name.
        self._inner = httpx.AsyncHTTPTransport(
            verify=trusted or _trusted(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Returns the answer of the first address that accepts a connection."""
        url, host = request.url, _host(request.url)
        try:
            addresses = await self._addresses(url)
        except AddressRefused as refused:
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
        addresses = await resolve(_host(checked))
        port = checked.port or _PORTS[checked.scheme]
        for address in addresses:
            _check_address(checked, address, allow_private=self._allow_private)
            await OWN.check(checked.host, address, port)
        return addresses[:_MOST_TRIED]


def safe_client(*, allow_private: Private, timeout: float) -> httpx.AsyncClient:
    """Returns a client for addresses that users supply. It follows no redirect unless a request says so; seconds."""
    return httpx.AsyncClient(
        transport=SafeTransport(allow_private=allow_private),
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        cookies=no_cookies(),
    )


def no_cookies() -> CookieJar:
    """Returns a jar that takes none: a client serves many tenants, and a cookie would tell one of them what is
    another's.
    """
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


@cache
def _trusted() -> ssl.SSLContext:
    """Returns the usual authorities, or those of SSL_CERT_FILE; made once, because that takes 20 ms."""
    return httpx.create_ssl_context()


def _check_address(url: httpx.URL, address: Address, *, allow_private: Private) -> None:
    if url.scheme == "http" and not (unmap(address).is_loopback or _is_named(url, allow_private)):
        raise AddressRefused(f"{url.host} is not this machine, so the URL must begin with https://")
    if is_metadata(address):
        raise AddressRefused(f"{url.host} is at {address}, which nobody may call")
    if not _may_be_private(url, allow_private) and not is_public(address):
        raise _private(url, allow_private)


def _host(url: httpx.URL) -> str:
    """Returns the host as it goes over the wire: a name in ASCII (IDNA), an address without brackets."""
    return url.raw_host.decode("ascii")


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _is_named(url: httpx.URL, private: Private) -> bool:
    return private_hosts.names(private, _host(url), _port(url))


def _may_be_private(url: httpx.URL, private: Private) -> bool:
    return allows_all(private) or _is_named(url, private)


def _private(url: httpx.URL, private: Private) -> AddressRefused:
    advice = private_hosts.advice(private, url.host, _port(url))
    return AddressRefused(f"{url.host} is not a public address; {advice}")


def _where_http(url: httpx.URL, private: Private) -> str:
    where = f"http:// only to this machine, where {ALLOW}=1 is set"
    named = f", or to hosts that {private_hosts.NAME} names, as {url.host}:{_port(url)} would be"
    return where + (named if isinstance(private, PrivateHosts) else "")


def _names_this_machine(host: str) -> bool:
    literal = literal_address(host)
    return host.rstrip(".").lower() == "localhost" if literal is None else unmap(literal).is_loopback
