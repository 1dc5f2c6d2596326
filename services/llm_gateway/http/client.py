"""The HTTP client of a provider, with aiohttp below: half the CPU of httpx's own transport for each call.

The addresses that tenants supply are checked where names are resolved, each time a connection is made; proxies of the
environment are for the operator's providers alone. Redirects are not followed: a key goes where it was meant to.
"""

import ipaddress
import socket
from collections.abc import Mapping
from typing import Any

import aiohttp
import httpx2
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from httpx_aiohttp.httpx2 import AiohttpTransport, Httpx2AiohttpClient

from services.common.core.addresses import is_public
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.recordings.recorder import RecordingTransport
from services.llm_gateway.recordings.replayer import ReplayingTransport

# People think longer than the SDKs' 5 s between two messages, and a new connection costs them a handshake. Where the
# server closes one earlier, a new one is made. The gate decides before how many calls run at once.
# 0 is aiohttp's word for none: what httpx has for that, None, would leave aiohttp its own of 100.
_LIMITS = httpx2.Limits(max_connections=0, max_keepalive_connections=100, keepalive_expiry=60.0)


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
        return Httpx2AiohttpClient(limits=_LIMITS, timeout=None, follow_redirects=False)
    transport = _PublicTransport(limits=_LIMITS, client=_public_session)
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
        if not self._allow_private:
            _check_literal(httpx2.Request("GET", url))
        if self._session is None:
            traces = [_no_redirects()]
            self._session = _session(traces) if self._allow_private else _public_session(traces)
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
    """The name or address is not one of the open internet."""


class _PublicTransport(AiohttpTransport):
    """aiohttp asks no resolver about what is an address already."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        _check_literal(request)
        return await super().handle_async_request(request)


def _check_literal(request: httpx2.Request) -> None:
    host = request.url.host
    try:
        literal = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return
    if not is_public(literal):
        raise PrivateAddress(f"{host} is a private address", request=request)


def _session(traces: list[aiohttp.TraceConfig]) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(keepalive_timeout=_LIMITS.keepalive_expiry, limit=0)
    return aiohttp.ClientSession(connector=connector, trust_env=True, trace_configs=traces)


def _public_session(traces: list[aiohttp.TraceConfig] | None = None) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(keepalive_timeout=_LIMITS.keepalive_expiry, limit=0, resolver=_PublicResolver())
    return aiohttp.ClientSession(connector=connector, trace_configs=traces)


class _PublicResolver(AbstractResolver):
    """The system's answers, refused where one of them is private: the connection goes to what was checked."""

    def __init__(self) -> None:
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = await self._system.resolve(host, port, family)
        if not all(is_public(ipaddress.ip_address(one["host"])) for one in addresses):
            raise OSError(f"{host} is a private address")
        return addresses

    async def close(self) -> None:
        await self._system.close()


def header_texts(headers: dict[str, Any]) -> dict[str, str]:
    """Returns the headers that are texts: an SDK leaves a header out by a value that is none."""
    return {name: value for name, value in headers.items() if isinstance(value, str)}
