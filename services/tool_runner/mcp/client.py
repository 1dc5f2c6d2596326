"""Speaks to MCP servers: sessions are kept warm by server, and what a server does wrong ends in time and in size."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakSet

from services.common.core.private_hosts import Private
from services.common.lazy_imports import import_lazily
from services.tool_runner.mcp.changes import ToolChanges
from services.tool_runner.mcp.protocol.bearer import Bearer, NoBearer
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem, ServerError
from services.tool_runner.mcp_servers.model import Server, Stdio
from services.tool_runner.mcp_servers.ports import Programs

if TYPE_CHECKING:
    from services.tool_runner.mcp.session import Dial, McpSession

JsonObject = dict[str, Any]
_TRANSPORTS = "services.tool_runner.mcp.transports"
_MOST_LINES = 256
_MOST_LINES_OF_TENANT = 64
# What really bounds them is the time for the list, and the next figure.
_MOST_PAGES = 1_000
_NO_SUCH_METHOD = -32601
_MOST_LISTED = 2_000
_MOST_CURSOR = 16 * 1024


@dataclass(frozen=True, slots=True)
class Times:
    """Longest waits, and how long a session without calls is kept; seconds."""

    connect: float = 30.0
    list: float = 30.0
    execute: float = 60.0
    idle: float = 120.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and who speaks to it. `stored`: its session may be kept; others end at once."""

    organization_id: UUID
    server: Server
    bearer: Bearer = field(default_factory=NoBearer)
    stored: bool = True


_Key = tuple[UUID, UUID, int]


class McpClient:
    """`programs` is None where servers that are programs are off."""

    def __init__(
        self,
        *,
        allow_private: Private,
        programs: Programs | None,
        times: Times | None = None,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._programs = programs
        self._trusted = trusted
        self.times = times or Times()
        self.changes = ToolChanges()
        self._lines: dict[_Key, McpSession] = {}
        self._opening: dict[_Key, asyncio.Lock] = {}
        # Those too that take no new requests and still have some.
        self._all: WeakSet[McpSession] = WeakSet()

    async def tools(self, target: Target) -> list[Any]:
        """Returns what it lists, as it sent it: at most 2,000, none of one without tools. Raises McpProblem."""
        return await self.listed(target, "tools/list", "tools")

    async def listed(self, target: Target, method: str, member: str) -> list[Any]:
        """Returns all pages of a list; nothing where the server has no such list. Raises McpProblem."""
        try:
            return await self._listed(target, method, member)
        except McpProblem as problem:
            if not problem.fresh:
                raise
        return await self._listed(target, method, member)

    async def read(self, target: Target, method: str, params: JsonObject) -> JsonObject:
        """Returns the answer to a question that changes nothing, as the server sent it. Raises McpProblem."""
        for last in (False, True):
            async with self._line(target) as line:
                try:
                    return await line.ask(method, params, seconds=self.times.execute)
                except ServerError as error:
                    raise McpProblem(Kind.FAILED, f"the MCP server answered {method}: {str(error)[:300]}") from None
                except McpProblem as problem:
                    if last or not problem.fresh:
                        raise
        raise AssertionError("the last attempt returns or raises")

    async def call(
        self,
        target: Target,
        name: str,
        arguments: JsonObject,
        *,
        schema: JsonObject,
        seconds: float,
        listener: Callable[[str], None],
    ) -> JsonObject:
        """Returns what a tool answered. Once sent, a call is never sent again. Raises McpProblem, ServerError."""
        params = {"name": name, "arguments": arguments}
        for last in (False, True):
            async with self._line(target) as line:
                try:
                    return await line.ask("tools/call", params, seconds=seconds, listener=listener, schema=schema)
                except McpProblem as problem:
                    if last or problem.arrived or not problem.fresh:
                        raise
        raise AssertionError("the last attempt returns or raises")

    async def forget(self, organization_id: UUID, server_id: UUID | None = None) -> None:
        """Ends the sessions of a server that is gone, and removes what its program had kept; None: of a tenant."""
        keys = [key for key in self._lines if key[0] == organization_id and server_id in (None, key[1])]
        await asyncio.gather(*(self._lines.pop(key).close() for key in keys))
        if self._programs:
            await self._programs.forget(organization_id, server_id)

    async def close(self) -> None:
        """Ends all sessions."""
        await self.changes.close()
        self._lines.clear()
        await asyncio.gather(*(line.close() for line in list(self._all)), return_exceptions=True)

    async def _listed(self, target: Target, method: str, member: str) -> list[Any]:
        listed: list[Any] = []
        async with self._line(target) as line:
            try:
                async with asyncio.timeout(self.times.list):
                    cursor: str | None = None
                    for _ in range(_MOST_PAGES):
                        params = {"cursor": cursor} if cursor else {}
                        page = await _page(line, method, member, params, self.times.list)
                        listed += page[member]
                        cursor = _next(page, cursor)
                        if cursor is None or len(listed) >= _MOST_LISTED:
                            break
            except TimeoutError:
                line.retire()
                text = f"the MCP server did not list its {member} within {self.times.list:g} s"
                raise McpProblem(Kind.TIMEOUT, text) from None
        return listed[:_MOST_LISTED]

    @asynccontextmanager
    async def _line(self, target: Target) -> AsyncIterator["McpSession"]:
        """Returns a session: the warm one, or a new one. Raises McpProblem."""
        if target.stored:
            yield await self._warm(target)
            return
        line = await self._new_session(target)
        try:
            yield line
        finally:
            await line.close()

    async def _warm(self, target: Target) -> "McpSession":
        key = (target.organization_id, target.server.id, target.server.version)
        # One that was looked at here may have ended since it was last asked.
        async with self._opening.setdefault(key, asyncio.Lock()):
            line = self._lines.get(key)
            if line is None or not line.alive:
                self._sweep(target)
                line = await self._new_session(target)
                self._lines[key] = line
            return line

    def _sweep(self, target: Target) -> None:
        """Forgets those that ended, and makes room by ending the one that was idle longest. Raises McpProblem."""
        for key, line in list(self._lines.items()):
            # Of an older version of the server, nothing is asked any more.
            if key[:2] == (target.organization_id, target.server.id):
                line.retire()
            if not line.alive:
                del self._lines[key]
        for key in [key for key, lock in self._opening.items() if key not in self._lines and not lock.locked()]:
            del self._opening[key]
        own = [key for key in self._lines if key[0] == target.organization_id]
        if len(own) >= _MOST_LINES_OF_TENANT:
            self._evict(own)
        elif len(self._lines) >= _MOST_LINES:
            self._evict(list(self._lines))

    def _evict(self, keys: list[_Key]) -> None:
        idle = [key for key in keys if not self._lines[key].busy]
        if not idle:
            raise McpProblem(Kind.UNREACHABLE, "too many MCP servers are in use at once; try again")
        self._lines.pop(min(idle, key=lambda key: self._lines[key].used)).retire()

    async def _new_session(self, target: Target) -> "McpSession":
        dial = await self._dial(target)
        from services.tool_runner.mcp.session import McpSession  # noqa: PLC0415 - see `_dial`

        changed = partial(self.changes.note, target.organization_id, target.server.id) if target.stored else None
        line = McpSession(dial, idle=self.times.idle, on_change=changed)
        self._all.add(line)
        await line.open(self.times.connect)
        return line

    async def _dial(self, target: Target) -> "Dial":
        transport = target.server.transport
        if isinstance(transport, Stdio) and self._programs is None:
            raise stdio_disabled()
        # The SDK takes 36 MB and most of a second: a process that never speaks to a server does without.
        await import_lazily(_TRANSPORTS)
        from services.tool_runner.mcp import transports  # noqa: PLC0415

        if isinstance(transport, Stdio):
            assert self._programs is not None
            server_id = target.server.id if target.stored else None
            return transports.process_dial(await self._programs.ready(target.organization_id, transport, server_id))
        return transports.http_dial(
            transport,
            target.bearer,
            allow_private=self._allow_private,
            connect=self.times.connect,
            execute=self.times.execute,
            trusted=self._trusted,
        )


async def _page(line: "McpSession", method: str, member: str, params: JsonObject, seconds: float) -> JsonObject:
    try:
        page = await line.ask(method, params, seconds=seconds)
    except ServerError as error:
        if error.code == _NO_SUCH_METHOD:  # it has others of tools, resources and prompts
            return {member: []}
        raise McpProblem(Kind.FAILED, f"the MCP server did not list its {member}: {str(error)[:300]}") from None
    if not isinstance(page.get(member), list):
        raise McpProblem(Kind.FAILED, f"the MCP server's list of {member} is no list")
    return page


def _next(page: JsonObject, cursor: str | None) -> str | None:
    following = page.get("nextCursor")
    if not isinstance(following, str) or not following or following == cursor or len(following) > _MOST_CURSOR:
        return None
    return following


def stdio_disabled() -> McpProblem:
    """Returns the problem of a server that is a program, where that is off."""
    return McpProblem(
        Kind.DISABLED,
        "MCP servers that are programs are off on this server; LOCI_MCP_STDIO=true (or MCP_DISABLE_STDIO=false) "
        "allows them, each in a sandbox",
    )
