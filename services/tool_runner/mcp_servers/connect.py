"""Connecting to a server for a person who watches: the events of it, and OAuth where the server wants that."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from uuid import UUID

from services.common.errors import InvalidArgument
from services.tool_runner.core.model import Tool
from services.tool_runner.mcp.client import Target
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers.model import Http, Server
from services.tool_runner.mcp_servers.ports import GIVEN, REFUSED, WAITING, Authorization, TokenStore
from services.tool_runner.mcp_servers.service import McpServerService
from services.tool_runner.mcp_servers.tokens import FixedBearer, TokenKeeper, load

CALLBACK_PATH = "/v1/tools/mcp/oauth/callback"
ATTEMPT_SECONDS = 600.0
_LOOK_SECONDS = 0.5
# Between events while the user is away, so that nothing between takes the stream for dead.
_QUIET_SECONDS = 10.0


class ConnectEventKind(IntEnum):
    """The numbers are those of McpConnectEvent in the proto."""

    CONNECTION_ATTEMPT = 1
    SUCCESS = 2
    ERROR = 3
    OAUTH_REQUIRED = 4
    AUTHORIZATION_URL = 5
    WAITING_FOR_AUTH = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectEvent:
    """One event; see StreamConnectResponse."""

    event: ConnectEventKind
    message: str
    url: str = ""
    session_id: str = ""
    state: str = field(default="", repr=False)
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedLeave:
    """A question to a user: at which address, for which server, by whom."""

    url: str
    server_name: str
    server_url: str
    organization_id: UUID
    user_id: UUID


class ConnectFlow:
    """Leads through it. `wallet` keeps what is given."""

    def __init__(self, registry: McpServerService, wallet: TokenKeeper) -> None:
        self._registry = registry
        self._wallet = wallet
        self._store: TokenStore = wallet.store

    async def stream(
        self, organization_id: UUID, user_id: UUID, server: Server, *, stored: bool, origin: str
    ) -> AsyncIterator[ConnectEvent]:
        """Yields the events; the last is SUCCESS or ERROR. `origin`: our address for browsers. Raises Refused."""
        yield ConnectEvent(event=ConnectEventKind.CONNECTION_ATTEMPT, message=f"Connecting to {server.name} ...")
        try:
            tools = await self._tools(organization_id, user_id, server, stored, "")
        except McpProblem as problem:
            if problem.kind is not Kind.OAUTH_REQUIRED or not isinstance(server.transport, Http):
                yield ConnectEvent(event=ConnectEventKind.ERROR, message=problem.message)
                return
            challenge = problem.challenge
        else:
            yield _success(server, tools)
            return
        yield ConnectEvent(event=ConnectEventKind.OAUTH_REQUIRED, message=f"{server.name} wants an authorisation")
        try:
            async for event in self._authorize(organization_id, user_id, server, stored, origin, challenge):
                yield event
        except McpProblem as problem:
            yield ConnectEvent(event=ConnectEventKind.ERROR, message=problem.message)

    async def asked(self, state: str) -> AskedLeave:
        """Returns what the user is asked for. Raises InvalidArgument."""
        attempt = await self._store.waiting(state) if state else None
        if attempt is None or not attempt.attempt or attempt.outcome != WAITING:
            raise _unknown()
        await load()
        from services.tool_runner.mcp.oauth import Attempt  # noqa: PLC0415 - see `load`

        wanted = Attempt.model_validate_json(attempt.attempt)
        return AskedLeave(wanted.url, wanted.server_name, wanted.server_url, attempt.organization_id, attempt.user_id)

    async def finish(self, state: str, code: str, error: str, issuer: str) -> UUID | None:
        """Returns what a browser brought back. The server that was authorised. Raises InvalidArgument, McpProblem."""
        attempt = await self._store.take(state) if state else None
        if attempt is None or not attempt.attempt:
            raise _unknown()
        try:
            if error or not code:
                raise McpProblem(Kind.FAILED, f"the authorisation was refused: {error[:300] or 'no code came'}")
            await self._exchange(state, attempt, code, issuer)
        except McpProblem as problem:
            await self._store.end(state, REFUSED, problem=problem.message[:1_000])
            raise
        return attempt.server_id

    async def _exchange(self, state: str, attempt: Authorization, code: str, issuer: str) -> None:
        await load()
        from services.tool_runner.mcp.oauth import Attempt, finish  # noqa: PLC0415 - see `load`

        async with await self._wallet.client() as client:
            grant = await finish(client, Attempt.model_validate_json(attempt.attempt), code, issuer)
        if attempt.server_id is None:
            await self._store.end(state, GIVEN, tokens=grant.tokens.access_token)
            return
        await self._store.write(attempt.organization_id, attempt.server_id, grant.model_dump_json(exclude_none=True))
        await self._store.end(state, GIVEN)

    async def _tools(
        self, organization_id: UUID, user_id: UUID, server: Server, stored: bool, token: str
    ) -> tuple[Tool, ...]:
        """Returns what it offers; the tools of a stored one come into the catalogue."""
        if stored:
            await self._registry.refresh(organization_id, user_id, server.id)
            return tuple(await self._registry.tools(organization_id, server.id))
        target = Target(organization_id, server, FixedBearer(token), stored=False)
        tools, _ = await self._registry.list_unsaved(organization_id, target)
        return tuple(tools)

    async def _authorize(
        self, organization_id: UUID, user_id: UUID, server: Server, stored: bool, origin: str, challenge: str
    ) -> AsyncIterator[ConnectEvent]:
        await load()
        from services.tool_runner.mcp.oauth import begin  # noqa: PLC0415 - see `load`

        assert isinstance(server.transport, Http)
        async with await self._wallet.client() as client:
            begun = await begin(client, server.transport.url, challenge, origin.rstrip("/") + CALLBACK_PATH)
        asked = begun.attempt.model_copy(update={"url": begun.url, "server_name": server.name})
        state, attempt = begun.state, asked.model_dump_json(exclude_none=True)
        server_id = server.id if stored else None
        await self._store.begin(state, organization_id, user_id, server_id, attempt, ATTEMPT_SECONDS)
        yield ConnectEvent(
            event=ConnectEventKind.AUTHORIZATION_URL,
            message="Give leave at this address",
            url=begun.url,
            session_id=_session_id(state),
            state=state,
        )
        # Whoever stops watching can still give leave: the attempt stays until it is over.
        async for event in self._wait_for_leave(state):
            yield event
        authorization = await self._store.waiting(state)
        token = authorization.tokens if authorization else ""
        await self._store.forget(state)
        yield _success(server, await self._tools(organization_id, user_id, server, stored, token))

    async def _wait_for_leave(self, state: str) -> AsyncIterator[ConnectEvent]:
        """Waits for the user's leave. Raises McpProblem where it was refused."""
        loop = asyncio.get_running_loop()
        event = -_QUIET_SECONDS
        while (authorization := await self._store.waiting(state)) is not None:
            if authorization.outcome == GIVEN:
                return
            if authorization.outcome == REFUSED:
                raise McpProblem(Kind.FAILED, authorization.problem)
            if loop.time() - event >= _QUIET_SECONDS:
                event = loop.time()
                yield ConnectEvent(event=ConnectEventKind.WAITING_FOR_AUTH, message="Waiting for the authorisation")
            await asyncio.sleep(_LOOK_SECONDS)
        raise McpProblem(Kind.TIMEOUT, f"nobody gave leave within {ATTEMPT_SECONDS / 60:g} minutes")


def _success(server: Server, tools: tuple[Tool, ...]) -> ConnectEvent:
    return ConnectEvent(
        event=ConnectEventKind.SUCCESS, message=f"{server.name} is connected and offers {len(tools)} tools", tools=tools
    )


def _unknown() -> InvalidArgument:
    return InvalidArgument(
        "this authorisation is unknown, used or over; connect to the MCP server again",
        reason="MCP_OAUTH_STATE_INVALID",
    )


def _session_id(state: str) -> str:
    """Names the attempt, and gives nothing away of its state."""
    return f"mcp-oauth-{UUID(bytes=sha256(state.encode()).digest()[:16], version=4)}"
