"""E2B for tests, spoken to by its SDK: the REST control plane, and envd (files, processes over Connect) behind it.

Both are one server on loopback; which sandbox is meant, envd's requests say in E2b-Sandbox-Id. What may go wrong is set
by a test: `refuse` answers the making of sandboxes, and `cut` ends one as E2B does at its time limit.
"""

import asyncio
import base64
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from e2b.envd.process import process_pb as pb
from e2b.envd.process.process_connect import ProcessASGIApplication
from protobuf import Oneof
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from tests.fakes.hosted_place import Place

KEY = "e2b_" + "0" * 40
_ENVD = "0.6.9"


@dataclass
class Machine:
    """A sandbox: what it was made with, and its place."""

    asked: dict[str, Any]
    place: Place
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    renewed: int = 0


class E2bServer:
    """`machines`: those that run. `made`: how many there ever were."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.made = 0
        self.asked: list[dict[str, Any]] = []
        self.refuse: tuple[int, str] | None = None
        # Sandboxes are made while it is open; so many wait for it.
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.refused = 0
        # Input with this text is taken, and the answer is lost.
        self.loses_answer_to = b""
        self.url = ""

    async def cut(self) -> None:
        """End all, as E2B does when their time is up."""
        for identity in list(self.machines):
            await self._end(identity)

    async def create(self, request: Request) -> Response:
        if request.headers.get("x-api-key") != KEY:
            return _error(401, "Invalid API key")
        if self.refuse:
            self.refused += 1
            return _error(*self.refuse)
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        asked = await request.json()
        self.asked.append(asked)
        self.made += 1
        identity = f"sandbox{self.made}"
        machine = self.machines[identity] = Machine(asked, await Place.make())
        about = {"templateID": asked["templateID"], "sandboxID": identity, "clientID": "", "envdVersion": _ENVD}
        return JSONResponse(about | {"envdAccessToken": machine.token}, 201)

    async def remove(self, request: Request) -> Response:
        if request.headers.get("x-api-key") != KEY:
            return _error(401, "Invalid API key")
        if request.path_params["identity"] not in self.machines:
            return _error(404, "sandbox not found")
        await self._end(request.path_params["identity"])
        return Response(status_code=204)

    async def renew(self, request: Request) -> Response:
        machine = self.machines.get(request.path_params["identity"])
        if machine is None:
            return _error(404, "sandbox not found")
        machine.renewed += 1
        return Response(status_code=204)

    async def upload(self, request: Request) -> Response:
        machine = self._meant(request.headers.get("e2b-sandbox-id", ""), request.headers.get("x-access-token", ""))
        if machine is None:
            return _gone()
        path = request.query_params["path"]
        assert request.query_params["username"] == "root"
        machine.place.write(path, await request.body())
        return JSONResponse([{"name": path.rpartition("/")[2], "type": "file", "path": path}])

    async def health(self, request: Request) -> Response:
        known = request.headers.get("e2b-sandbox-id") in self.machines
        return Response(status_code=204) if known else _gone()

    async def envd(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The Connect services, for sandboxes that are there; a proxy in front of them answers for the others."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if self._meant(headers.get("e2b-sandbox-id", ""), headers.get("x-access-token", "")) is None:
            return await _gone()(scope, receive, send)
        whole = {**scope, "root_path": ""}
        return await ProcessASGIApplication(Processes(self))(whole, receive, send)

    def _meant(self, identity: str, token: str) -> Machine | None:
        machine = self.machines.get(identity)
        return machine if machine and machine.token == token else None

    async def _end(self, identity: str) -> None:
        if machine := self.machines.pop(identity, None):
            await machine.place.end()


class Processes:
    """`process.Process` of envd: what `commands` of the SDK uses."""

    def __init__(self, server: E2bServer) -> None:
        self._server = server

    async def start(self, request: pb.StartRequest, ctx: RequestContext[Any, Any]) -> AsyncIterator[pb.StartResponse]:
        assert base64.b64decode(ctx.request_headers["authorization"].split()[1]) == b"root:"
        config = request.process
        assert config
        place = self._machine(ctx).place
        process = await place.run([config.cmd, *config.args], config.envs)
        yield _event("start", pb.ProcessEvent.StartEvent(pid=process.pid))
        pieces: asyncio.Queue[pb.StartResponse | None] = asyncio.Queue(4)
        pumps = [
            asyncio.create_task(_pump(name, stream, pieces))
            for name, stream in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        try:
            for _ in pumps:
                while piece := await pieces.get():
                    yield piece
            status = await process.wait()
        finally:
            for pump in pumps:
                pump.cancel()
        if place not in [machine.place for machine in self._server.machines.values()]:
            raise ConnectError(Code.UNAVAILABLE, "the connection to the sandbox ended before the stream completed")
        yield _event("end", pb.ProcessEvent.EndEvent(exit_code=status, exited=True, status=f"exit status {status}"))

    async def send_input(self, request: pb.SendInputRequest, ctx: RequestContext[Any, Any]) -> pb.SendInputResponse:
        assert request.process
        assert request.process.selector
        assert request.input
        assert request.input.input
        pid = request.process.selector.value
        process = next((one for one in self._machine(ctx).place.processes if one.pid == pid), None)
        if process is None or process.returncode is not None:
            raise ConnectError(Code.NOT_FOUND, f"process with pid {pid} not found")
        assert process.stdin
        process.stdin.write(request.input.input.value)
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        if (lost := self._server.loses_answer_to) and lost in request.input.input.value:
            raise ConnectError(Code.UNAVAILABLE, "the connection was lost")
        return pb.SendInputResponse()

    def _machine(self, ctx: RequestContext[Any, Any]) -> Machine:
        return self._server.machines[ctx.request_headers["e2b-sandbox-id"]]

    def __getattr__(self, name: str) -> Any:
        """Methods that nothing here uses."""

        async def unimplemented(*_: object) -> None:
            raise ConnectError(Code.UNIMPLEMENTED, name)

        return unimplemented


@asynccontextmanager
async def serving() -> AsyncIterator[E2bServer]:
    """On a free port of loopback."""
    server = E2bServer()
    identity = "/sandboxes/{identity}"
    app = Starlette(
        routes=[
            Route("/v2/sandboxes", server.create, methods=["POST"]),
            Route(identity, server.remove, methods=["DELETE"]),
            Route(f"{identity}/timeout", server.renew, methods=["POST"]),
            Route("/files", server.upload, methods=["POST"]),
            Route("/health", server.health),
            Mount("/", server.envd),
        ]
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=0)
        web = uvicorn.Server(config)
        serve = asyncio.create_task(web._serve(sockets=[listener]))
        try:
            yield server
        finally:
            await server.cut()
            web.should_exit = True
            await serve


async def _pump(name: Any, stream: asyncio.StreamReader | None, pieces: asyncio.Queue[pb.StartResponse | None]) -> None:
    assert stream
    while data := await stream.read(1 << 15):
        await pieces.put(_event("data", pb.ProcessEvent.DataEvent(output=Oneof(name, data))))
    await pieces.put(None)


def _event(kind: Any, value: Any) -> pb.StartResponse:
    return pb.StartResponse(event=pb.ProcessEvent(event=Oneof(kind, value)))


def _error(status: int, message: str) -> Response:
    return JSONResponse({"code": status, "message": message}, status)


def _gone() -> Response:
    return JSONResponse({"message": "The sandbox was not found", "code": 502}, 502)
