"""The HTTP clients that hand requests on: one for each provider, by the rules of its other calls.

Imported with the first request: a process that hands nothing on has no HTTP client in memory.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from services.llm_gateway.core.errors import (
    LlmConnection,
    LlmError,
    LlmNotAnApi,
    LlmStreamIncomplete,
    LlmStreamMalformed,
    LlmTimeout,
)
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.forwards.addresses import Forward, headers_of, url_of
from services.llm_gateway.http.bodies import MOST_OF_STREAM, chunks_of
from services.llm_gateway.http.client import BrokenHttp, http_client
from services.llm_gateway.recordings.settings import Recordings

# Each has connections. Beyond this the longest unused goes.
_MOST_KEPT = 200
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A vendor's answer; `chunks` are of its body, decoded."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]


class _Client:
    """A client; closed with its last request once it was let go."""

    def __init__(self, config: ProviderConfig, http: httpx2.AsyncClient) -> None:
        self.config = config
        self.http = http
        self.users = 0
        self.let_go = False


class Clients:
    """Kept until a newer version of the provider is asked for, or the process ends."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._kept: OrderedDict[tuple[object, str], _Client] = OrderedDict()

    @asynccontextmanager
    async def answer(self, request: Forward, config: ProviderConfig, patience: float) -> AsyncGenerator[Answer, None]:
        """Yields the answer to a request, closed at the end; `patience`: the longest wait for a byte, in seconds.
        Raises LlmError, also while its chunks are read.
        """
        async with self._of(config) as http:
            response = await _send(http, request, config, patience)
            try:
                yield Answer(response.status_code, response.headers, _chunks(response, config, patience))
            finally:
                await response.aclose()

    @asynccontextmanager
    async def _of(self, config: ProviderConfig) -> AsyncGenerator[httpx2.AsyncClient, None]:
        """Yields the client of a provider, for one request."""
        client = await self._current(config)
        client.users += 1
        try:
            yield client.http
        finally:
            client.users -= 1
            if client.let_go and not client.users:
                await client.http.aclose()

    async def close(self) -> None:
        """Closes those that nobody uses, and the others with their last request."""
        while self._kept:
            await self._let_go(next(iter(self._kept)))

    async def _current(self, config: ProviderConfig) -> _Client:
        known = self._kept.get(config.key)
        if known is not None and known.config == config:
            self._kept.move_to_end(config.key)
            return known
        client = _Client(config, http_client(self._recordings.apply(config)))
        old = self._kept.pop(config.key, None)
        self._kept[config.key] = client
        # Held, so that nobody who comes meanwhile has it closed.
        client.users += 1
        try:
            await self._close_unused(old)
            if len(self._kept) > _MOST_KEPT:
                await self._let_go(next(iter(self._kept)))
        finally:
            client.users -= 1
        return client

    async def _let_go(self, key: tuple[object, str]) -> None:
        await self._close_unused(self._kept.pop(key))

    async def _close_unused(self, client: _Client | None) -> None:
        if client is not None:
            client.let_go = True
            if not client.users:
                await client.http.aclose()


async def _send(http: httpx2.AsyncClient, forward: Forward, config: ProviderConfig, patience: float) -> httpx2.Response:
    timeout = httpx2.Timeout(patience, connect=min(patience, _CONNECT_SECONDS))
    request = httpx2.Request(
        forward.method,
        url_of(forward, config),
        headers=headers_of(forward, config),
        content=forward.body or None,
        extensions={"timeout": timeout.as_dict()},
    )
    try:
        return await http.send(request, stream=True)
    except (httpx2.HTTPError, OSError, BrokenHttp) as error:
        raise _error_of(error, config, patience) from error


def _error_of(error: Exception, config: ProviderConfig, patience: float) -> LlmError:
    name = config.name
    if isinstance(error, BrokenHttp):
        return LlmNotAnApi(f"{name} does not speak HTTP as it should; is {config.url_setting} right?", provider=name)
    if isinstance(error, ValueError):
        return LlmStreamMalformed(f"{name} sent an answer that cannot be read ({error}). Try again.", provider=name)
    if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
        return LlmTimeout(f"{name} sent nothing for {patience:g} s. Try again later.", provider=name)
    if isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError):
        return LlmStreamIncomplete(f"{name} closed the connection in the middle. Try again.", provider=name)
    return LlmConnection(
        f"{name} cannot be reached at {config.base_url} ({str(error) or type(error).__name__}). "
        f"Check {config.url_setting} and the network.",
        provider=name,
    )


async def _chunks(response: httpx2.Response, config: ProviderConfig, patience: float) -> AsyncGenerator[bytes, None]:
    size = 0
    try:
        async for chunk in chunks_of(response):
            size += len(chunk)
            if size > MOST_OF_STREAM:
                raise ValueError(f"it is longer than {MOST_OF_STREAM:,} bytes")
            yield chunk
    except (httpx2.HTTPError, OSError, BrokenHttp, ValueError) as error:
        raise _error_of(error, config, patience) from error
