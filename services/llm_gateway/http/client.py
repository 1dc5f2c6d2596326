"""The HTTP client of a provider, with aiohttp below: half the CPU of httpx's own transport for each call.

Addresses are checked where names are resolved, each time a connection is made: those of a cloud's metadata are nobody's
to call, private ones the operator's. Proxies of the environment are for the operator's providers alone. Redirects are
not followed: a key goes where it was meant to.
"""

import errno
import ipaddress
import socket
from collections.abc import Mapping
from ssl import SSLContext
from typing import Any

import aiohttp
import httpx2
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from httpx_aiohttp.httpx2 import AiohttpTransport, Httpx2AiohttpClient

from services.common.core.addresses import Address, AddressRefused, is_metadata, is_public, literal_address
from services.common.own_places import OWN
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.recordings.recorder import RecordingTransport
from services.llm_gateway.recordings.replayer import ReplayingTransport

# People think longer than the SDKs' 5 s between two messages, and a new connection costs them a handshake. Where the
# server closes one earlier, a new one is made. The gate decides before how many calls run at once.
# 0 is aiohttp's word for none: what httpx has for that, None, would leave aiohttp its own of 100.
_LIMITS = httpx2.Limits(max_connections=0, max_keepalive_connections=100, keepalive_expiry=60.0)


_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}

# What aiohttp raises for a head or a framing that is none, and httpx does not know: it goes through as it is.
BrokenHttp = aiohttp.ClientResponseError


def http_client(config: ProviderConfig) -> httpx2.AsyncClient:
    """Returns a client for the provider's endpoint; nothing is opened before the first call. A replay has no
    network.
    """
    if config.replay_from:
        return httpx2.AsyncClient(transport=ReplayingTransport(config), timeout=None, trust_env=False)
    client = _client(config)
    if config.record_to:
        return httpx2.AsyncClient(transport=RecordingTransport(client, config), timeout=None, trust_env=False)
    return client


def _client(config: ProviderConfig) -> httpx2.AsyncClient:
    if config.allow_private:
        return _ProxyClient(timeout=None, follow_redirects=False)
    transport = _CheckedTransport(allow_private=False)
    return httpx2.AsyncClient(transport=transport, timeout=None, follow_redirects=False, trust_env=False)


class WebSockets:
    """The opener of WebSockets to the provider's endpoint, by the same rules; redirects are not followed: they could
    lead to an address that nothing has checked. The session is made at the first.
    """

    def __init__(self, config: ProviderConfig) -> None:
        self._allow_private = config.allow_private
        self._session: aiohttp.ClientSession | None = None

    async def open(self, url: str, headers: Mapping[str, str], **options: Any) -> aiohttp.ClientWebSocketResponse:
        """Returns a connection; `options` are those of aiohttp's `ws_connect`. Raises aiohttp.ClientError, OSError or
        PrivateAddress."""
        await _check_literal(httpx2.Request("GET", url), allow_private=self._allow_private)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_connector(allow_private=self._allow_private),
                trust_env=self._allow_private,
                trace_configs=[_no_redirects()],
            )
        connection: aiohttp.ClientWebSocketResponse = await self._session.ws_connect(url, headers=headers, **options)
        return connection

    async def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            await self._session.close()


def _no_redirects() -> aiohttp.TraceConfig:
    async def refuse(*_: object) -> None:
        raise aiohttp.ClientConnectionError("a redirect of a WebSocket is not followed")

    traces = aiohttp.TraceConfig()
    traces.on_request_redirect.append(refuse)
    return traces


class PrivateAddress(httpx2.ConnectError):
    """The name or address is one that may not be called."""


class _ProxyClient(Httpx2AiohttpClient):
    """A client that goes through the proxies of the environment, where there are any."""

    def _init_transport(self, *_: Any, **__: Any) -> httpx2.AsyncBaseTransport:
        return _CheckedTransport(allow_private=True)


class _CheckedTransport(AiohttpTransport):
    """Calls addresses that were checked. aiohttp asks no resolver about what is an address already."""

    def __init__(self, *, allow_private: bool) -> None:
        super().__init__(limits=_LIMITS)
        self._allow_private = allow_private

    def get_client(self) -> aiohttp.ClientSession:
        """Returns the session of this transport."""
        return aiohttp.ClientSession(connector=_connector(allow_private=self._allow_private, ssl=self.ssl_context))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises PrivateAddress beside what a call raises."""
        await _check_literal(request, allow_private=self._allow_private)
        return await super().handle_async_request(request)


async def _check_literal(request: httpx2.Request, *, allow_private: bool) -> None:
    host = request.url.host
    literal = literal_address(host)
    if literal is None:
        return
    if not _may_be_called(literal, allow_private=allow_private):
        raise PrivateAddress(f"{host} is a private address", request=request)
    try:
        await OWN.check(host, literal, request.url.port or _PORTS.get(request.url.scheme, 0))
    except AddressRefused as refused:
        raise PrivateAddress(str(refused), request=request) from None


def _may_be_called(address: Address, *, allow_private: bool) -> bool:
    return not is_metadata(address) and (allow_private or is_public(address))


def _connector(*, allow_private: bool, ssl: SSLContext | bool = True) -> aiohttp.TCPConnector:
    resolver = _CheckedResolver(allow_private=allow_private)
    return aiohttp.TCPConnector(keepalive_timeout=_LIMITS.keepalive_expiry, limit=0, resolver=resolver, ssl=ssl)


class _CheckedResolver(AbstractResolver):
    """The system's answers, refused where one of them may not be called: the connection goes to what was checked."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Returns the addresses of a name. Raises OSError."""
        results = await self._system.resolve(host, port, family)
        addresses = [ipaddress.ip_address(one["host"].partition("%")[0]) for one in results]
        if not all(_may_be_called(address, allow_private=self._allow_private) for address in addresses):
            raise _refused(f"{host} is a private address")
        for address in addresses:
            try:
                await OWN.check(host, address, port)
            except AddressRefused as refused:
                raise _refused(str(refused)) from None
        return results

    async def close(self) -> None:
        """Ends the system's resolver."""
        await self._system.close()


def _refused(sentence: str) -> OSError:
    """Returns an error of which aiohttp shows the sentence, which takes a number."""
    return OSError(errno.EACCES, sentence)


def header_texts(headers: dict[str, Any]) -> dict[str, str]:
    """Returns the headers that are texts: an SDK leaves a header out by a value that is none."""
    return {name: value for name, value in headers.items() if isinstance(value, str)}
