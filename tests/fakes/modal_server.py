"""Modal for tests, spoken to by its SDK over its own protos: the control plane and the router of commands, one server.

What may go wrong is set by a test: `refuse` is the status that the making of sandboxes is answered with, and `cut` ends
one as Modal does at the end of its lifetime.
"""

import asyncio
import base64
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as router

from tests.fakes.hosted_place import Place

TOKEN = ("ak-test", "as-test")
_CONTROL = "/modal.client.ModalClient/"
_ROUTER = "/modal.task_command_router.TaskCommandRouter/"
_DONE = api.GenericResult.GENERIC_STATUS_SUCCESS
_ENDED = api.GenericResult.GENERIC_STATUS_TERMINATED


class Output:
    """All that came from one stream of a process, to be read from any offset."""

    def __init__(self, stream: asyncio.StreamReader | None) -> None:
        assert stream
        self.data = bytearray()
        self.whole = False
        self._more = asyncio.Condition()
        self._pump = asyncio.create_task(self._fill(stream))

    async def read(self, offset: int) -> bytes:
        """Returns the bytes from there on; b"" at the end."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.data) > offset or self.whole)
            return bytes(self.data[offset : offset + (1 << 16)])

    async def end(self) -> None:
        """Ends the stream: its machine is off."""
        self._pump.cancel()
        await asyncio.wait([self._pump])
        async with self._more:
            self.whole = True
            self._more.notify_all()

    async def _fill(self, stream: asyncio.StreamReader) -> None:
        more = True
        while more:
            piece = await stream.read(1 << 16)
            async with self._more:
                self.data += piece
                self.whole = not piece
                self._more.notify_all()
            more = bool(piece)


@dataclass
class Execution:
    """A process that was asked for."""

    process: asyncio.subprocess.Process
    outputs: dict[int, Output]
    written: int = 0


@dataclass
class Machine:
    """A sandbox: what it was made with, and its place."""

    asked: api.SandboxCreateV2Request
    place: Place
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    executions: dict[str, Execution] = field(default_factory=dict)


class ModalServer:
    """`machines`: those that run. `made`: how many there ever were."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.made = 0
        self.asked: list[api.SandboxCreateV2Request] = []
        self.refuse: tuple[Status, str] | None = None
        # Sandboxes are made while it is open; so many wait for it.
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        # Input with this text is taken, and the answer is lost.
        self.loses_answer_to = b""
        self.url = ""
        self._gone: dict[str, Machine] = {}

    async def cut(self) -> None:
        """End all, as Modal does when their time is up."""
        for identity in list(self.machines):
            await self._end(identity)

    def __mapping__(self) -> dict[str, Handler]:
        """For grpclib: the calls that are known here; the others are UNIMPLEMENTED."""
        control = (
            self._unary(self.hello, Empty, api.ClientHelloResponse),
            self._unary(self.app_get_or_create, api.AppGetOrCreateRequest, api.AppGetOrCreateResponse),
            self._unary(
                self.environment_get_or_create, api.EnvironmentGetOrCreateRequest, api.EnvironmentGetOrCreateResponse
            ),
            self._unary(self.image_get_or_create, api.ImageGetOrCreateRequest, api.ImageGetOrCreateResponse),
            self._unary(self.sandbox_create_v2, api.SandboxCreateV2Request, api.SandboxCreateV2Response),
            self._unary(self.sandbox_get_task_id_v2, api.SandboxGetTaskIdRequest, api.SandboxGetTaskIdResponse),
            self._unary(self.sandbox_terminate_v2, api.SandboxTerminateRequest, api.SandboxTerminateResponse),
            self._unary(self.sandbox_wait_v2, api.SandboxWaitRequest, api.SandboxWaitResponse),
            self._unary(self.auth_token_get, api.AuthTokenGetRequest, api.AuthTokenGetResponse),
            self._unary(
                self.sandbox_get_command_router_access,
                api.SandboxGetCommandRouterAccessRequest,
                api.SandboxGetCommandRouterAccessResponse,
            ),
        )
        commands = (
            self._unary(self.task_exec_start, router.TaskExecStartRequest, router.TaskExecStartResponse),
            self._unary(
                self.task_exec_stdin_write, router.TaskExecStdinWriteRequest, router.TaskExecStdinWriteResponse
            ),
            self._unary(self.task_exec_wait, router.TaskExecWaitRequest, router.TaskExecWaitResponse),
        )
        stdio = Handler(
            self.task_exec_stdio_read,
            Cardinality.UNARY_STREAM,
            router.TaskExecStdioReadRequest,
            router.TaskExecStdioReadResponse,
        )
        return {
            **{f"{_CONTROL}{_rpc(method)}": handler for method, handler in control},
            **{f"{_ROUTER}{_rpc(method)}": handler for method, handler in commands},
            f"{_ROUTER}TaskExecStdioRead": stdio,
        }

    async def hello(self, request: Any) -> api.ClientHelloResponse:
        return api.ClientHelloResponse()

    async def app_get_or_create(self, request: api.AppGetOrCreateRequest) -> api.AppGetOrCreateResponse:
        return api.AppGetOrCreateResponse(app_id=f"ap-{request.app_name}")

    async def environment_get_or_create(
        self, request: api.EnvironmentGetOrCreateRequest
    ) -> api.EnvironmentGetOrCreateResponse:
        metadata = api.EnvironmentMetadata(
            name="main", settings=api.EnvironmentSettings(image_builder_version="2025.06")
        )
        return api.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    async def image_get_or_create(self, request: api.ImageGetOrCreateRequest) -> api.ImageGetOrCreateResponse:
        name = request.image.dockerfile_commands[0].removeprefix("FROM ")
        return api.ImageGetOrCreateResponse(image_id=f"im-{name}", result=api.GenericResult(status=_DONE))

    async def sandbox_create_v2(self, request: api.SandboxCreateV2Request) -> api.SandboxCreateV2Response:
        if self.refuse:
            raise GRPCError(*self.refuse)
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        self.asked.append(request)
        self.made += 1
        self.machines[f"sb-{self.made}"] = Machine(request, await Place.make())
        return api.SandboxCreateV2Response(sandbox_id=f"sb-{self.made}", task_id=f"ta-sb-{self.made}")

    async def sandbox_get_task_id_v2(self, request: api.SandboxGetTaskIdRequest) -> api.SandboxGetTaskIdResponse:
        return api.SandboxGetTaskIdResponse(task_id=f"ta-{request.sandbox_id}")

    async def sandbox_terminate_v2(self, request: api.SandboxTerminateRequest) -> api.SandboxTerminateResponse:
        await self._end(request.sandbox_id)
        return api.SandboxTerminateResponse()

    async def sandbox_wait_v2(self, request: api.SandboxWaitRequest) -> api.SandboxWaitResponse:
        machine = self.machines.get(request.sandbox_id) or self._gone[request.sandbox_id]
        with suppress(TimeoutError):
            await asyncio.wait_for(machine.ended.wait(), request.timeout)
        status = _ENDED if machine.ended.is_set() else api.GenericResult.GENERIC_STATUS_UNSPECIFIED
        return api.SandboxWaitResponse(result=api.GenericResult(status=status))

    async def auth_token_get(self, request: api.AuthTokenGetRequest) -> api.AuthTokenGetResponse:
        return api.AuthTokenGetResponse(token=_jwt())

    async def sandbox_get_command_router_access(
        self, request: api.SandboxGetCommandRouterAccessRequest
    ) -> api.SandboxGetCommandRouterAccessResponse:
        self._machine(request.sandbox_id or request.task_id)
        return api.SandboxGetCommandRouterAccessResponse(url=self.url, jwt=_jwt())

    async def task_exec_start(self, request: router.TaskExecStartRequest) -> router.TaskExecStartResponse:
        machine = self._machine(request.task_id)
        if request.exec_id not in machine.executions:
            process = await machine.place.run(list(request.command_args), {})
            outputs = {0: Output(process.stdout), 1: Output(process.stderr)}
            machine.executions[request.exec_id] = Execution(process, outputs)
        return router.TaskExecStartResponse()

    async def task_exec_stdin_write(
        self, request: router.TaskExecStdinWriteRequest
    ) -> router.TaskExecStdinWriteResponse:
        execution = self._machine(request.task_id).executions[request.exec_id]
        assert request.offset == execution.written
        assert execution.process.stdin
        execution.process.stdin.write(request.data)
        execution.written += len(request.data)
        with suppress(ConnectionError):
            await execution.process.stdin.drain()
        if self.loses_answer_to and self.loses_answer_to in request.data:
            raise GRPCError(Status.FAILED_PRECONDITION, "the connection was lost")
        return router.TaskExecStdinWriteResponse()

    async def task_exec_stdio_read(
        self, stream: Stream[router.TaskExecStdioReadRequest, router.TaskExecStdioReadResponse]
    ) -> None:
        request = await stream.recv_message()
        assert request
        machine = self._machine(request.task_id)
        output, offset = machine.executions[request.exec_id].outputs[request.file_descriptor], request.offset
        while data := await output.read(offset):
            offset += len(data)
            await stream.send_message(router.TaskExecStdioReadResponse(data=data))
        if machine.ended.is_set():
            raise GRPCError(Status.UNAVAILABLE, "the task is gone")

    async def task_exec_wait(self, request: router.TaskExecWaitRequest) -> router.TaskExecWaitResponse:
        process = self._machine(request.task_id).executions[request.exec_id].process
        return router.TaskExecWaitResponse(code=await process.wait())

    def _machine(self, task_id: str) -> Machine:
        machine = self.machines.get(task_id.removeprefix("ta-"))
        if machine is None:
            raise GRPCError(Status.UNAVAILABLE, "the task is gone")
        return machine

    async def _end(self, identity: str) -> None:
        if machine := self.machines.pop(identity, None):
            self._gone[identity] = machine
            machine.ended.set()
            await machine.place.end()
            for execution in machine.executions.values():
                await asyncio.gather(*(output.end() for output in execution.outputs.values()))

    def _unary(self, method: Callable[[Any], Awaitable[Any]], request: Any, response: Any) -> tuple[Any, Handler]:
        async def handle(stream: Stream[Any, Any]) -> None:
            message = await stream.recv_message()
            metadata: Any = stream.metadata or {}
            given = (metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret"))
            if not isinstance(message, tuple(_ROUTED)) and given != TOKEN:
                raise GRPCError(Status.UNAUTHENTICATED, "Token ID or secret is wrong")
            await stream.send_message(await method(message))

        return method, Handler(handle, Cardinality.UNARY_UNARY, request, response)


_ROUTED = (router.TaskExecStartRequest, router.TaskExecStdinWriteRequest, router.TaskExecWaitRequest)


@asynccontextmanager
async def serving() -> AsyncIterator[ModalServer]:
    """On a free port of loopback."""
    fake = ModalServer()
    server = Server([fake])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        fake.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await server.start(sock=listener)
        try:
            yield fake
        finally:
            await fake.cut()
            server.close()
            await server.wait_closed()


def _rpc(method: Any) -> str:
    name = "".join(part.title() for part in method.__name__.split("_"))
    return "ClientHello" if name == "Hello" else name


def _jwt() -> str:
    """Enough of one for a client that looks when it ends."""
    parts = ({"alg": "none"}, {"exp": int(time.time()) + 3600})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".x"
