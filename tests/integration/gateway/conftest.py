"""The gateway as a process would run it - uvicorn on a real socket - in front of scripted services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from letta_client import AsyncLetta

from gateway.bootstrap import build
from gateway.server.http_server import HttpServer
from gateway.settings import Settings
from loci.agent.v1 import agent_service_pb2
from loci.llm.v1 import model_service_pb2
from loci.tool.v1 import sandbox_config_service_pb2
from tests.integration.gateway import samples
from tests.integration.gateway.scripted import Backend


@dataclass
class Edge:
    """A running gateway and its clients."""

    url: str
    sdk: AsyncLetta
    http: httpx.AsyncClient
    stop: Callable[[], Awaitable[None]]


StartGateway = Callable[..., Awaitable[Edge]]


@asynccontextmanager
async def scripted_backend() -> AsyncIterator[Backend]:
    """Every service, answering what nearly every test needs."""
    made = Backend()
    made.on("GetAgent", lambda request: agent_service_pb2.GetAgentResponse(agent=samples.agent(id=request.agent_id)))
    made.on("ListModels", lambda _: model_service_pb2.ListModelsResponse(models=[samples.model()]))
    made.on(
        "ListEmbeddingModels",
        lambda _: model_service_pb2.ListEmbeddingModelsResponse(models=[samples.embedding_model()]),
    )
    made.on("BatchGetEnvironments", lambda _: sandbox_config_service_pb2.BatchGetEnvironmentsResponse())
    await made.start()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """The services of one test."""
    async with scripted_backend() as made:
        yield made


@pytest.fixture
async def start_gateway(backend: Backend) -> AsyncIterator[StartGateway]:
    """`await start_gateway(password="...")`: a gateway with these settings, stopped at the end of the test."""
    async with AsyncExitStack() as stack:

        async def start(**settings: Any) -> Edge:
            return await stack.enter_async_context(running(backend, **settings))

        yield start


@pytest.fixture
async def edge(start_gateway: StartGateway) -> Edge:
    """A gateway with short waits and otherwise default settings."""
    return await start_gateway()


@asynccontextmanager
async def running(backend: Backend, *, grace: int = 5, **settings: Any) -> AsyncIterator[Edge]:
    """A gateway in front of `backend`; requests get `grace` seconds when it stops."""
    base = Settings(
        port=0,
        agent_address=backend.address("agent"),
        memory_address=backend.address("memory"),
        llm_gateway_address=backend.address("llm_gateway"),
        tool_runner_address=backend.address("tool_runner"),
        call_timeout=5.0,
        reattach_window=3.0,
    )
    chosen = replace(base, **settings)
    gateway = build(chosen, backend.signer, verifier=backend.verifier)
    server = HttpServer(gateway.app, chosen.host, chosen.port, grace=grace, max_body_bytes=chosen.max_body_bytes)
    serving = asyncio.create_task(server.serve())
    url = f"http://{chosen.host}:{server.port}"
    async with (
        AsyncLetta(base_url=url, api_key=settings.get("password"), max_retries=0) as sdk,
        httpx.AsyncClient(base_url=url, timeout=20) as http,
    ):
        try:
            yield Edge(url, sdk, http, server.stop)
        finally:
            await sdk.close()
            await http.aclose()
            await server.stop()
            await serving
            await gateway.close()
