"""Addresses and headers of requests: as a vendor's SDK makes them, or with a bearer token at most."""

from typing import Any, NamedTuple, Protocol

import httpx2

from services.llm_gateway.core.provider_config import NO_KEY
from services.llm_gateway.http.client import header_texts


class Route(NamedTuple):
    """The address of a request, and its headers."""

    url: httpx2.URL
    headers: httpx2.Headers


class Routes(Protocol):
    """The addresses of an endpoint, and the authentication there."""

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """Returns the route of one request; `path` is relative to the base URL, with its query. Raises LlmError."""
        ...


# What a vendor's SDK may say anywhere. It also takes headers from the environment (OPENAI_ORG_ID,
# ANTHROPIC_CUSTOM_HEADERS and others), which are the operator's and for the vendor alone.
_SAID_ANYWHERE = frozenset({"accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta"})
_WITH_A_KEY = frozenset({"authorization", "api-key", "x-api-key"})


class SdkRoutes:
    """The address and headers of a vendor's SDK of the `openai` and `anthropic` kind, read once for each path.

    `is_operators`: the vendor's own endpoint, called with the operator's key.
    """

    def __init__(self, client: Any, *, is_operators: bool) -> None:
        self._client = client
        self._is_operators = is_operators
        self._known: dict[tuple[str, str], Route] = {}

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        return self._known.get((method, path)) or self._read(method, path)

    def _read(self, method: str, path: str) -> Route:
        client = self._client
        texts = header_texts({**client.default_headers, **client.auth_headers})
        # Of two that differ by case the later, which is not the environment's.
        headers = httpx2.Headers()
        for name, value in texts.items():
            if self._is_operators or self._is_said_anywhere(name.lower(), value):
                headers[name] = value
        headers.setdefault("accept-encoding", "gzip, deflate")
        route = Route(httpx2.URL(f"{str(client.base_url).rstrip('/')}{path}"), headers)
        if "?" not in path:
            self._known[method, path] = route
        return route

    def _is_said_anywhere(self, name: str, value: str) -> bool:
        if name in _WITH_A_KEY:
            return value.removeprefix("Bearer ") == str(self._client.api_key)
        return name in _SAID_ANYWHERE or name.startswith("x-stainless-")


class BearerRoutes:
    """Paths behind one base URL, which ends without a slash."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url
        self._headers = httpx2.Headers(
            {"accept": "*/*", "accept-encoding": "gzip, deflate", "content-type": "application/json"}
        )
        if api_key and api_key != NO_KEY:
            self._headers["authorization"] = f"Bearer {api_key}"

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        return Route(httpx2.URL(f"{self._base_url}{path}"), self._headers)
