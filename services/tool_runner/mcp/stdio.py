"""Servers that are programs, in sandboxes: with their packages as a layer, and the network that they are allowed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.errors import FailedPrecondition
from services.tool_runner.core import requirements
from services.tool_runner.core.job import Job, Language, Layer, Limits, Mode, SandboxUnavailable
from services.tool_runner.core.ports import Ends, Layers, Process, Sandboxes
from services.tool_runner.egress.egress import Egress
from services.tool_runner.egress.protocol import placeholders
from services.tool_runner.mcp.protocol.commands import program_of
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers.model import Stdio

# Longer than that nobody waits; it goes on, and is there the next time.
_INSTALL_SECONDS = 25.0


class SandboxPrograms:
    """`mcp.ports.Programs`. `limits` hold for a program as long as it runs; `host_folders`: see `Job`."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        egress: Egress,
        layers: Layers,
        limits: Limits,
        host_folders: tuple[str, ...] = (),
    ) -> None:
        self._sandboxes = sandboxes
        self._egress = egress
        self._layers = layers
        self._limits = limits
        self._host_folders = host_folders

    async def ready(self, organization_id: UUID, program: Stdio) -> AbstractAsyncContextManager[Process]:
        """See the port."""
        try:
            found = program_of(program.command, program.args)
            policy = self._egress.policy_of(program.network)
            environment, held = placeholders.split(dict(program.env), policy)
            layer = await self._layer(found.requirements, found.language)
            sandbox = await self._sandboxes.get()
        except (Refused, SandboxUnavailable, FailedPrecondition) as error:
            raise _cannot(str(error)) from None
        job = Job(
            "",
            "",
            {},
            environment=environment,
            limits=self._limits,
            language=found.language,
            mode=Mode.PROCESS,
            argv=found.argv,
            layer=layer,
            host_folders=self._host_folders,
            tenant=str(organization_id),
        )
        allowed = bool(policy.allow or policy.secrets)
        tunnel = self._egress.tunnel(policy, held) if allowed else None
        return _running(lambda: sandbox.open(job, Ends(tunnel=tunnel)))

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


def _cannot(why: str) -> McpProblem:
    return McpProblem(Kind.UNREACHABLE, f"the MCP server's program cannot be started: {why}")
