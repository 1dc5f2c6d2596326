"""Real gRPC servers with scripted answers: what stands behind the gateway in these tests.

Every method of every service is there. A test says what one answers with `on`, and reads what was asked in `asked`.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loci.agent.v1 import (
    access_service_pb2_grpc,
    agent_service_pb2,
    agent_service_pb2_grpc,
    conversation_service_pb2_grpc,
    group_service_pb2_grpc,
    message_service_pb2_grpc,
    run_service_pb2_grpc,
    step_service_pb2_grpc,
)
from loci.llm.v1 import (
    chat_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
    provider_service_pb2_grpc,
    usage_service_pb2_grpc,
)
from loci.memory.v1 import (
    archive_service_pb2_grpc,
    block_service_pb2_grpc,
    folder_service_pb2_grpc,
    passage_service_pb2_grpc,
)
from loci.tool.v1 import (
    execution_service_pb2_grpc,
    mcp_service_pb2_grpc,
    sandbox_config_service_pb2,
    sandbox_config_service_pb2_grpc,
    tool_service_pb2_grpc,
)
from services.common.context import CallContext, Signer, Verifier, current
from services.common.errors import Unimplemented
from services.common.server import Server, make_server
from services.common.telemetry import current_trace_id
from tests.integration.gateway import samples

Answer = Callable[[Any], Any]
SERVICES: dict[str, tuple[Any, ...]] = {
    "agent": (
        access_service_pb2_grpc,
        agent_service_pb2_grpc,
        conversation_service_pb2_grpc,
        group_service_pb2_grpc,
        message_service_pb2_grpc,
        run_service_pb2_grpc,
        step_service_pb2_grpc,
    ),
    "memory": (
        archive_service_pb2_grpc,
        block_service_pb2_grpc,
        folder_service_pb2_grpc,
        passage_service_pb2_grpc,
    ),
    "llm_gateway": (chat_service_pb2_grpc, model_service_pb2_grpc, provider_service_pb2_grpc, usage_service_pb2_grpc),
    "tool_runner": (
        sandbox_config_service_pb2_grpc,
        execution_service_pb2_grpc,
        mcp_service_pb2_grpc,
        tool_service_pb2_grpc,
    ),
}
_USUAL: dict[str, Answer] = {
    "GetAgent": lambda request: agent_service_pb2.GetAgentResponse(agent=samples.agent(id=request.agent_id)),
    "ListModels": lambda _: model_service_pb2.ListModelsResponse(models=[samples.model()]),
    "ListEmbeddingModels": lambda _: model_service_pb2.ListEmbeddingModelsResponse(models=[samples.embedding_model()]),
    "BatchGetEnvironments": lambda _: sandbox_config_service_pb2.BatchGetEnvironmentsResponse(),
}
# Services whose methods are called like those of others.
_NAMED_WHOLE = {
    usage_service_pb2_grpc.UsageServiceServicer: "UsageService",
    execution_service_pb2_grpc.ExecutionServiceServicer: "ExecutionService",
}


class Backend:
    """All services of a tenant, each on a Unix socket of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gw-"))
        key = Ed25519PrivateKey.generate()
        self.signer = Signer(key, "test")
        self.verifier = Verifier({"test": key.public_key()})
        self._answers: dict[str, Answer] = dict(_USUAL)
        self._servers: dict[str, Server] = {}
        self.asked: list[tuple[str, Any]] = []
        self.callers: list[CallContext] = []
        self.traces: list[str] = []

    def on(self, method: str, answer: Answer) -> None:
        """`answer` takes the request: a unary one returns or raises, a streaming one is an async generator. `method` is
        named as `_said` does.
        """
        self._answers[method] = answer

    def requests(self, method: str) -> list[Any]:
        """What `method` was asked, in order."""
        return [request for name, request in self.asked if name == method]

    def address(self, service: str) -> str:
        """Where a service listens."""
        return f"unix://{self._folder / service}.sock"

    async def start(self, *services: str) -> None:
        """Starts these services, or all."""
        for name in services or SERVICES:
            modules = SERVICES[name]
            registrations = [_registration(module, self) for module in modules]
            self._servers[name] = make_server(
                self.address(name), servicers=registrations, service_names=(), audience=name, verifier=self.verifier
            )
            await self._servers[name].start()

    async def reset(self) -> None:
        """Forgets what was asked, answers what nearly every test needs and no more, starts what was stopped."""
        self.asked, self.callers, self.traces = [], [], []
        self._answers = dict(_USUAL)
        if stopped := SERVICES.keys() - self._servers.keys():
            await self.start(*stopped)

    async def stop(self, service: str, grace: float = 0.0) -> None:
        """Cuts every call of a service and stops it, as a crash would."""
        server = self._servers.pop(service)
        await server.stop(grace)

    async def close(self) -> None:
        """Stops all that runs."""
        for name in list(self._servers):
            await self.stop(name)
        shutil.rmtree(self._folder)

    async def unary(self, method: str, request: Any) -> Any:
        """Serves one unary call."""
        answer = self._note(method, request)(request)
        return await answer if isinstance(answer, Awaitable) else answer

    async def stream(self, method: str, request: Any) -> AsyncIterator[Any]:
        """Serves one streaming call."""
        async for message in self._note(method, request)(request):
            yield message

    def _note(self, method: str, request: Any) -> Answer:
        self.asked.append((method, request))
        self.callers.append(current())
        self.traces.append(current_trace_id())
        if method not in self._answers:
            raise Unimplemented(f"the test has no answer for {method}")
        return self._answers[method]


def _registration(module: Any, backend: Backend) -> tuple[Callable[[Any, Any], None], object]:
    base = next(value for name, value in vars(module).items() if name.endswith("Servicer"))
    methods = {name: _method(_said(base, name), backend) for name in vars(base) if not name.startswith("_")}
    add = getattr(module, f"add_{base.__name__}_to_server")
    return add, type("Scripted", (base,), methods)()


def _said(base: Any, method: str) -> str:
    """A method as tests name it: by its name alone, but for services whose names others have, too."""
    return f"{_NAMED_WHOLE[base]}.{method}" if base in _NAMED_WHOLE else method


def _method(name: str, backend: Backend) -> Callable[..., Any]:
    if name.rpartition(".")[2].startswith("Stream"):

        async def serve_stream(_: object, request: Any, context: object) -> AsyncIterator[Any]:
            async for message in backend.stream(name, request):
                yield message

        return serve_stream

    async def serve(_: object, request: Any, context: object) -> Any:
        return await backend.unary(name, request)

    return serve


async def settled(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Returns when `condition` holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def new_id(prefix: str) -> str:
    """A fresh public id."""
    raw = secrets.token_hex(16)
    return f"{prefix}-{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:]}"
