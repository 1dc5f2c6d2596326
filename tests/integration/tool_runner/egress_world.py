"""A proxy as a tool sees it, on a port of this machine, and hosts behind names that the test makes up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import httpx
import pytest
from aiohttp import web

from services.common.core.addresses import AddressRefused
from services.tool_runner.core.ports import Tunnel
from services.tool_runner.egress import destinations
from services.tool_runner.egress.certificates import Authority
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.egress.protocol.placeholders import split
from services.tool_runner.egress.proxy import Limits
from services.tool_runner.egress.streams import Socket


@dataclass
class Host:
    """A web server that remembers what it was asked."""

    port: int = 0
    asked: list[web.Request] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    # Opened once for each line of /steps.
    steps: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.connections.add(request.transport)
        handler: Callable[[web.Request], Any] | None = getattr(self, f"_{request.path.strip('/')}", None)
        if handler is not None:
            answered: web.StreamResponse = await handler(request)
            return answered
        return web.json_response(
            {"headers": {name.lower(): value for name, value in request.headers.items()}, "target": request.raw_path}
        )

    async def _redirect(self, request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": request.query["to"]})

    async def _mirror(self, request: web.Request) -> web.Response:
        shown = {f"x-seen-{name.lower()}": value for name, value in request.headers.items()}
        return web.Response(headers=shown, text=request.headers.get("authorization", ""))

    async def _body(self, request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def _ticks(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number in range(int(request.query["number"])):
            await response.write(f"data: {number}\n\n".encode())
            await asyncio.sleep(0.1)
        return response

    async def _steps(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number in range(3):
            await self.steps.acquire()
            await response.write(f"data: {number}\n\n".encode())
        return response

    async def _large(self, request: web.Request) -> web.Response:
        return web.Response(body=bytes(4 * 1024 * 1024))

    async def _hang(self, request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        async for message in response:
            await response.send_str(f"heard {message.data}")
        return response


@asynccontextmanager
async def hosting(host: Host, context: ssl.SSLContext | None = None) -> AsyncIterator[Host]:
    """Serves `host` on a free port."""
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", host.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    host.port = runner.addresses[0][1]
    try:
        yield host
    finally:
        await runner.cleanup()


@dataclass
class World:
    """`names`: addresses of names, in the order in which they are told; the last one stays."""

    names: dict[str, list[list[str]]]
    authority: Authority
    egress: Egress
    plain: Host
    secure: Host

    @asynccontextmanager
    async def proxy(self, tunnel: Tunnel) -> AsyncIterator[str]:
        """The tunnel as a proxy; its URL."""
        tasks: set[asyncio.Task[Any]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await tunnel.serve(Socket(reader, writer))
            except asyncio.CancelledError:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def client(
        self, network: str, environment: dict[str, str] | None = None, token: str = ""
    ) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, str]]]:
        """A client in a tool's place, and the environment that the tool sees."""
        policy = self.egress.policy_of(network)
        shown, held = split(environment or {}, policy)
        tunnel = self.egress.tunnel(policy, held, token)
        trusted = ssl.create_default_context(cadata=self.authority.pem)
        if tunnel.authority:
            trusted.load_verify_locations(cadata=tunnel.authority)
        async with (
            self.proxy(tunnel) as url,
            httpx.AsyncClient(proxy=url, verify=trusted, timeout=30, trust_env=False) as client,
        ):
            yield client, shown

    @asynccontextmanager
    async def raw(self, network: str) -> AsyncIterator[Callable[[bytes], Any]]:
        """A function that sends bytes on a new connection, and reads the answer to its end."""
        async with self.proxy(self.egress.tunnel(self.egress.policy_of(network))) as url:

            async def say(data: bytes) -> bytes:
                reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
                writer.write(data)
                writer.write_eof()
                try:
                    return await asyncio.wait_for(reader.read(), 30)
                finally:
                    writer.close()

            yield say


def settings(**given: Any) -> EgressSettings:
    """Settings for hosts on this machine."""
    return EgressSettings(**{"allow_private": True, **given})


@asynccontextmanager
async def world(monkeypatch: pytest.MonkeyPatch, chosen: EgressSettings) -> AsyncIterator[World]:
    """Hosts with and without TLS; the names `api.test` and `other.test` are this machine."""
    names = {"api.test": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]}

    async def resolve(host: str) -> list[Any]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if host not in names:
            raise AddressRefused(f"{host} cannot be resolved")
        told = names[host].pop(0) if len(names[host]) > 1 else names[host][0]
        return [ip_address(address) for address in told]

    monkeypatch.setattr(destinations, "resolve", resolve)
    authority = Authority()
    egress = Egress(chosen, trusted=ssl.create_default_context(cadata=authority.pem))
    async with hosting(Host()) as plain, hosting(Host(), authority.context("api.test")) as secure:
        yield World(names, authority, egress, plain, secure)


__all__ = ["Host", "Limits", "World", "hosting", "settings", "world"]
