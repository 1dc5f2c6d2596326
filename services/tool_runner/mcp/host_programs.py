"""Servers that are programs, as ordinary processes of this machine: for a person on a machine of their own.

They run as the user of Loci, with that user's files, programs and network. `network` holds for sandboxes alone.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from uuid import UUID

from services.common.processes import Child
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.core.ports import Process
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers.model import Stdio
from services.tool_runner.sandboxes.streams import without_middle

_CHUNK = 1 << 16
# By the protocol: its stdin ends, then it is asked to end, then it is killed.
_LEAVE_SECONDS, _TERMINATE_SECONDS = 1.0, 2.0


class HostPrograms:
    """`mcp_servers.ports.Programs`. environment: of every program, before its own `env`.

    homes: the folders that programs begin in; None: the user's home.
    """

    def __init__(self, environment: Mapping[str, str], homes: Homes | None = None) -> None:
        self._environment = environment
        self._homes = homes

    async def ready(
        self, organization_id: UUID, program: Stdio, server_id: UUID | None
    ) -> AbstractAsyncContextManager[Process]:
        """See the port."""
        variables = {**self._environment, **program.env}
        path = shutil.which(program.command, path=variables.get("PATH", os.defpath))
        if path is None:
            where = "is no program" if "/" in program.command else "is in no folder of PATH"
            raise _cannot(f"there is no {program.command} on this machine: it {where}; install it")
        try:
            home = await self._homes.of(organization_id, server_id) if self._homes and server_id else None
        except SandboxUnavailable as error:
            raise _cannot(str(error)) from None
        folder = home or Path(variables.get("HOME") or "/")
        return self._running((path, *program.args), variables, folder, home)

    async def forget(self, organization_id: UUID, server_id: UUID | None) -> None:
        """See the port."""
        if self._homes:
            await self._homes.remove(organization_id, server_id)

    @asynccontextmanager
    async def _running(
        self, command: tuple[str, ...], variables: Mapping[str, str], folder: Path, home: Path | None
    ) -> AsyncIterator[Process]:
        try:
            process: Process = await HostProcess.start(command, variables, folder)
        except OSError as error:
            raise _cannot(f"{error.filename or command[0]}: {error.strerror}") from None
        if self._homes and home:
            process = self._homes.watched(process, home)
        try:
            yield process
        finally:
            await asyncio.shield(process.close())


class HostProcess:
    """See `core.ports.Process`."""

    def __init__(self, child: Child, errors: asyncio.StreamReader, pipe: asyncio.BaseTransport) -> None:
        self._child = child
        self._pipe = pipe
        self._errors = ""
        self._listening = asyncio.create_task(self._listen(errors))
        self._closed = False

    @classmethod
    async def start(cls, command: tuple[str, ...], environment: Mapping[str, str], folder: Path) -> "HostProcess":
        """Raises OSError."""
        read, write = os.pipe()
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as passed, contextlib.ExitStack() as undone:
            passed.callback(os.close, write)
            source = undone.enter_context(os.fdopen(read, "rb", 0))
            pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
            undone.callback(pipe.close)
            child = await Child.start(
                *command, environment=environment, errors=write, new_session=True, folder=str(folder)
            )
            undone.pop_all()
        return cls(child, reader, pipe)

    async def read(self) -> bytes:
        """See `core.ports.Process`."""
        data = b""
        with contextlib.suppress(ConnectionError):
            data = await self._child.reader.read(_CHUNK)
        if not data:  # its last words may be on their way
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._listening), _LEAVE_SECONDS)
        return data

    async def write(self, data: bytes) -> None:
        """See `core.ports.Process`."""
        await self._child.send(data)

    @property
    def errors(self) -> str:
        """See `core.ports.Process`."""
        return self._errors

    async def close(self) -> None:
        """See `core.ports.Process`. What it started ends with it."""
        if self._closed:
            return
        self._closed = True
        self._child.end_input()
        if not await self._ends_within(_LEAVE_SECONDS):
            self._signal(signal.SIGTERM)
            await self._ends_within(_TERMINATE_SECONDS)
        self._signal(signal.SIGKILL)
        await self._child.end()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        # What left its group may hold the other end for ever.
        self._pipe.close()

    async def _ends_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._child.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        # Its group is its own, and has its number as long as any of it runs.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        while text := await errors.read(_CHUNK):
            self._errors = without_middle(self._errors + text.decode("utf-8", "replace"))


def _cannot(why: str) -> McpProblem:
    return McpProblem(Kind.UNREACHABLE, f"the MCP server's program cannot be started: {why}")
