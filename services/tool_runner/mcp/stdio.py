"""Servers that are programs, in sandboxes: with their packages as a layer, and the network that they are allowed."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.errors import FailedPrecondition
from services.tool_runner.core import requirements
from services.tool_runner.core.job import (
    NOTHING_SHOWN,
    HostView,
    Job,
    Language,
    Layer,
    Limits,
    Mode,
    SandboxUnavailable,
)
from services.tool_runner.core.network_policy import DEFAULT_PORTS, Host, Policy
from services.tool_runner.core.ports import Ends, Layers, Process, Sandboxes
from services.tool_runner.egress.egress import Egress
from services.tool_runner.egress.protocol import placeholders
from services.tool_runner.egress.targets import is_here
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.protocol.commands import program_of
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers.model import Stdio
from services.tool_runner.sandboxes.host_folders import chosen_folders

# Longer than that nobody waits; it goes on, and is there the next time.
_INSTALL_SECONDS = 25.0
# Of npm packages, in the program's home; see `npm_program`.
_COPIES = "/work/.packages"
_RUN_TCP = Path(__file__).with_name("tcp_program.py").read_text()


class SandboxPrograms:
    """`mcp.ports.Programs`. `limits` hold for a program as long as it runs; `host`: what it sees of the machine.

    homes: where programs keep what they write; None: in memory, until they end. tcp: hosts that they reach by TCP.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        egress: Egress,
        layers: Layers,
        limits: Limits,
        host: HostView = NOTHING_SHOWN,
        homes: Homes | None = None,
        tcp: Sequence[Host] = (),
    ) -> None:
        self._sandboxes = sandboxes
        self._egress = egress
        self._layers = layers
        self._limits = limits
        self._host = host
        self._homes = homes
        self._tcp = tcp
        self._places = tcp_places(tcp)

    async def ready(
        self, organization_id: UUID, program: Stdio, server_id: UUID | None
    ) -> AbstractAsyncContextManager[Process]:
        """See the port."""
        try:
            found = program_of(program.command, program.args)
            folders = chosen_folders(self._host.folders, program.paths)
            policy = self._egress.policy_of(program.network).with_allowed(self._tcp)
            environment, held = placeholders.split(dict(program.env), policy)
            layer = await self._layer(found.requirements, found.language)
            sandbox = await self._sandboxes.get()
            home = await self._home(organization_id, server_id)
        except (Refused, SandboxUnavailable, FailedPrecondition) as error:
            raise _cannot(str(error)) from None
        allowed = bool(policy.allow or policy.secrets)
        job = Job(
            "",
            "",
            {},
            environment=environment | _local_places(policy) | ({"loci_package_copy": _COPIES} if home else {}),
            limits=self._limits,
            language=found.language,
            mode=Mode.PROCESS,
            argv=self._through_tcp(found.argv),
            layer=layer,
            host=replace(self._host, folders=folders, home=str(home or ""), names=tuple(_names(self._places))),
            tenant=str(organization_id),
        )
        tunnel = self._egress.tunnel(policy, held) if allowed else None

        async def start() -> Process:
            process = await sandbox.open(job, Ends(tunnel=tunnel))
            return self._homes.watched(process, home) if self._homes and home else process

        return _running(start)

    async def forget(self, organization_id: UUID, server_id: UUID | None) -> None:
        """See the port."""
        if self._homes:
            await self._homes.remove(organization_id, server_id)

    async def _home(self, organization_id: UUID, server_id: UUID | None) -> Path | None:
        return await self._homes.of(organization_id, server_id) if self._homes and server_id else None

    def _through_tcp(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return ("python3", "-I", "-S", "-c", _RUN_TCP, json.dumps(self._places), *argv) if self._places else argv

    async def _layer(self, needed: str, language: Language) -> Layer | None:
        if not needed:
            return None
        parse = requirements.parse_npm if language is Language.NODE else requirements.parse_pip
        try:
            async with asyncio.timeout(_INSTALL_SECONDS):
                return await self._layers.of(parse(needed), language)
        except TimeoutError:
            text = "the packages of the MCP server are being installed; refresh it in a minute"
            raise McpProblem(Kind.TIMEOUT, text) from None


def tcp_places(hosts: Sequence[Host]) -> list[tuple[str, int, str]]:
    """Returns (address in the sandbox, port, host) for each; what is on this machine keeps its address."""
    names = list(dict.fromkeys(host.name for host in hosts))
    own = {name: f"127.1.{number >> 8}.{number & 255}" for number, name in enumerate(names, start=1)}
    own |= {name: "127.0.0.1" if name == "localhost" else name for name in names if is_here(name)}
    return [(own[host.name], host.port, host.name) for host in hosts if host.port]


def _names(places: Sequence[tuple[str, int, str]]) -> dict[tuple[str, str], None]:
    return {(host, address): None for address, _, host in places if not is_here(host)}


@asynccontextmanager
async def _running(open_: Callable[[], Awaitable[Process]]) -> AsyncIterator[Process]:
    try:
        process = await open_()
    except SandboxUnavailable as error:
        raise _cannot(str(error)) from None
    try:
        yield process
    finally:
        await asyncio.shield(process.close())


def _local_places(policy: Policy) -> dict[str, str]:
    """Returns the variable by which Node asks the proxy, not the sandbox, for hosts of the machine; see `node/`."""
    hosts = (*policy.allow, *(host for secret in policy.secrets.values() for host in secret.hosts))
    ports = ((host.name, port) for host in hosts for port in ((host.port,) if host.port else DEFAULT_PORTS))
    local = [f"{name}:{port}" for name, port in ports if name == "localhost" or name.startswith("127.")]
    return {"loci_proxied_local": ",".join(local)} if local else {}


def _cannot(why: str) -> McpProblem:
    return McpProblem(Kind.UNREACHABLE, f"the MCP server's program cannot be started: {why}")
