"""The client, as a proxy in front names it: taken from proxies that the operator named, and from nobody else."""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gateway.settings import Network


class ForwardedRequests:
    """Gives a request the scheme, client and host that X-Forwarded-Proto, -For and -Host name.

    Of several hosts the last is taken: the nearest proxy wrote it. Addresses are read from the right as far as they are
    proxies'; the first other one is the client.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        inner: Any = app
        self._app: Any = ProxyHeadersMiddleware(inner, [str(network) for network in proxies])
        self._proxies = tuple(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request or WebSocket."""
        if scope["type"] != "lifespan" and self._is_proxy(scope.get("client")):
            _take_host(scope)
        await self._app(scope, receive, send)

    def _is_proxy(self, client: tuple[str, int] | None) -> bool:
        try:
            address = ip_address(client[0]) if client else None
        except ValueError:
            return False
        return address is not None and any(address in network for network in self._proxies)


def _take_host(scope: Scope) -> None:
    said = [value for name, value in scope["headers"] if name == b"x-forwarded-host"]
    host = said[-1].rpartition(b",")[2].strip() if said else b""
    if host:
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        scope["headers"] = [(b"host", host), *others]
