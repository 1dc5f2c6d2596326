"""The gateway as a process would run it - uvicorn on a real socket - in front of scripted services.

The services' gRPC servers and the listening sockets are the module's: to start and stop them for each test took most of
its time. What remembers anything is the test's own: the gateway with its caches and channels, the clients, the answers.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from letta_client import AsyncLetta, DefaultAsyncHttpxClient
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.bootstrap import build
from gateway.server.http_server import HttpServer
from gateway.settings import Settings
from tests.integration.gateway.scripted import Backend

_HERE = Path(__file__).parent
# For requests that a test has left behind.
_REST_SECONDS = 5.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module share its event loop, in which its servers run."""
    for item in items:
        if _HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@dataclass
class Edge:
    """A running gateway and its clients."""

    url: str
    sdk: AsyncLetta
    http: httpx.AsyncClient


StartGateway = Callable[..., Awaitable[Edge]]


class Listener:
    """A server on a free port, behind which a test puts its gateway."""

    def __init__(self, **options: Any) -> None:
        self._app: ASGIApp | None = None
        self._requests: set[asyncio.Task[Any]] = set()
        self._server = HttpServer(self, "127.0.0.1", 0, **options)
        self._serving = asyncio.create_task(self._server.serve())
        self.url = f"http://127.0.0.1:{self._server.port}"

    @asynccontextmanager
    async def serving(self, app: ASGIApp) -> AsyncIterator[None]:
        """Serves `app`; at the end nothing of it runs any more."""
        self._app = app
        try:
            yield
        finally:
            if self._requests:
                _, late = await asyncio.wait(self._requests, timeout=_REST_SECONDS)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)
            self._app = None

    async def stop(self) -> None:
        """Lets requests have the grace of a stop, and stops."""
        await self._server.stop()
        await self._serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        task = asyncio.current_task()
        assert task is not None
        assert self._app is not None, "a request after the end of its test"
        self._requests.add(task)
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests.discard(task)


class Listeners:
    """The servers of a module: as many as one of its tests has used at once."""

    def __init__(self) -> None:
        self._idle: list[Listener] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Listener]:
        """A server that nobody else uses meanwhile."""
        listener = self._idle.pop() if self._idle else Listener()
        yield listener
        self._idle.append(listener)

    async def stop(self) -> None:
        """Stops all."""
        await asyncio.gather(*(listener.stop() for listener in self._idle))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services() -> AsyncIterator[Backend]:
    """The services of a module."""
    made = Backend()
    await made.start()
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def listeners() -> AsyncIterator[Listeners]:
    """The servers of a module."""
    made = Listeners()
    yield made
    await made.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def backend(services: Backend) -> Backend:
    """The services, all running, asked nothing yet, and answering what nearly every test needs."""
    await services.reset()
    return services


@pytest_asyncio.fixture(loop_scope="module")
async def start_gateway(backend: Backend, listeners: Listeners) -> AsyncIterator[StartGateway]:
    """`await start_gateway(password="...")`: a gateway with these settings, gone at the end of the test."""
    async with AsyncExitStack() as stack:

        async def start(**settings: Any) -> Edge:
            if "max_body_bytes" in settings:  # which the server heeds, too
                listener = Listener(max_body_bytes=settings["max_body_bytes"])
                stack.push_async_callback(listener.stop)
            else:
                listener = await stack.enter_async_context(listeners.one())
            return await stack.enter_async_context(running(backend, listener, **settings))

        yield start


@pytest_asyncio.fixture(loop_scope="module")
async def edge(start_gateway: StartGateway) -> Edge:
    """A gateway with default settings."""
    return await start_gateway()


@cache
def trust() -> ssl.SSLContext:
    """Of every client here: to read the authorities anew takes longer than most tests."""
    return ssl.create_default_context()


@asynccontextmanager
async def running(backend: Backend, listener: Listener, **settings: Any) -> AsyncIterator[Edge]:
    """A gateway in front of `backend` and behind `listener`."""
    base = Settings(
        port=0,
        agent_address=backend.address("agent"),
        memory_address=backend.address("memory"),
        llm_gateway_address=backend.address("llm_gateway"),
        tool_runner_address=backend.address("tool_runner"),
    )
    gateway = build(replace(base, **settings), backend.signer, verifier=backend.verifier)
    token = settings.get("password")
    client = DefaultAsyncHttpxClient(verify=trust())
    try:
        async with (
            listener.serving(gateway.app),
            AsyncLetta(base_url=listener.url, api_key=token, max_retries=0, http_client=client) as sdk,
            httpx.AsyncClient(base_url=listener.url, timeout=20, verify=trust()) as http,
        ):
            yield Edge(listener.url, sdk, http)
    finally:
        await gateway.close()
