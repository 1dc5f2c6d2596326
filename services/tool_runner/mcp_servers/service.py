"""The registry: what tenants say of their MCP servers, and the tools that come from there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from services.common.core.addresses import AddressRefused
from services.common.core.private_hosts import Private
from services.common.core.refusals import Refused
from services.common.errors import Aborted, AlreadyExists, NotFound
from services.common.lazy_imports import import_lazily
from services.tool_runner.builtin import BUILTIN_TOOLS
from services.tool_runner.core.masking import Mask
from services.tool_runner.core.model import Tool
from services.tool_runner.mcp.client import McpClient, Target, stdio_disabled
from services.tool_runner.mcp.protocol import server_tools
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.protocol.server_tools import ServerTool, ServerTools
from services.tool_runner.mcp.schema_check import SchemaCheck
from services.tool_runner.mcp_servers import masks, model
from services.tool_runner.mcp_servers.model import INVALID, MOST_SERVERS, Http, Server, Status, Stdio, Transport
from services.tool_runner.mcp_servers.ports import McpStore, SyncOutcome
from services.tool_runner.mcp_servers.tokens import TokenKeeper, origin
from services.tool_runner.tools.ports import ToolStore

_ATTEMPTS = 5
_BUILTIN = frozenset(tool.name for tool in BUILTIN_TOOLS)
_LONGEST_PROBLEM = 1_000
_STATUS = {Kind.OAUTH_REQUIRED: Status.OAUTH_REQUIRED}


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """A server as it is now, and the names of the tools that came, changed and went."""

    server: Server
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerParts:
    """The parts of the registry. `stdio`: whether servers may be programs; `shows_secrets`: to whoever changes one."""

    store: McpStore
    tools: ToolStore
    client: McpClient
    wallet: TokenKeeper
    check: SchemaCheck
    allow_private: Private
    stdio: bool
    shows_secrets: bool = False


class McpServerService:
    """The servers of all tenants. Every method takes the tenant from the verified call context."""

    def __init__(self, parts: McpServerParts) -> None:
        self._parts = parts
        self._store = parts.store

    async def create(self, organization_id: UUID, user_id: UUID, server: Server) -> Server:
        """Stores it and reads its tools. Raises Refused, AlreadyExists, McpProblem (programs are off)."""
        await self._check(server.transport)
        named = replace(server, name=model.check_name(server.name), transport=masks.unmask(server.transport, _NOTHING))
        stored = await self._store.insert(organization_id, user_id, named, MOST_SERVERS)
        if stored.status is not Status.NEVER_ASKED:
            return stored  # the same request again
        try:
            return (await self.refresh(organization_id, user_id, stored.id)).server
        except McpProblem:
            return await self.get(organization_id, stored.id)

    async def get(self, organization_id: UUID, server_id: UUID) -> Server:
        """Raises NotFound."""
        if server := await self._store.find(organization_id, server_id):
            return server
        raise _no_such(f"mcp_server-{server_id}")

    async def find_by_name(self, organization_id: UUID, name: str) -> Server:
        """Raises NotFound."""
        if server := await self._store.find_by_name(organization_id, name):
            return server
        raise _no_such(repr(name[:100]))

    async def all(self, organization_id: UUID) -> list[Server]:
        """Returns all servers, oldest first."""
        return await self._store.all(organization_id)

    async def of_tools(self, organization_id: UUID, tool_ids: Sequence[UUID]) -> list[Server]:
        """Returns the servers that have one of these tools, by name."""
        return await self._store.of_tools(organization_id, tool_ids)

    async def update(
        self,
        organization_id: UUID,
        user_id: UUID,
        server_id: UUID,
        name: str | None,
        transport: "TransportChange | None",
    ) -> Server:
        """Changes what is given. Raises NotFound, AlreadyExists, Aborted, Refused, McpProblem (programs are off)."""
        for _ in range(_ATTEMPTS):
            present = await self.get(organization_id, server_id)
            changed = present.transport if transport is None else transport.apply_to(present.transport)
            if changed != present.transport:
                await self._check(changed)
            named = present.name if name is None else model.check_name(name)
            if (named, changed) == (present.name, present.transport):
                return present
            moved = _origin(changed) != _origin(present.transport)
            if moved and transport is not None and not self._parts.shows_secrets:
                transport.check_secrets_are_new(present.transport)
            server = replace(present, name=named, transport=changed)
            if changed != present.transport:
                server = replace(server, status=Status.NEVER_ASKED, problem="")
            if stored := await self._store.update(organization_id, user_id, server, forget_oauth=moved):
                return await self._follow_name(organization_id, user_id, present, stored)
        raise Aborted(f"mcp_server-{server_id} is being changed by others; try again", reason="TOOL_CHANGED")

    async def _follow_name(self, organization_id: UUID, user_id: UUID, before: Server, stored: Server) -> Server:
        """Gives its tools the new name of a server; they are read anew by `refresh` alone, as in the reference."""
        if stored.name != before.name:
            for tool in await self._store.tools(organization_id, stored.id):
                await self._parts.tools.update(organization_id, user_id, renamed_tool(tool, stored.name))
        return stored

    async def delete(self, organization_id: UUID, server_id: UUID) -> None:
        """Deletes it with its tools. Raises NotFound."""
        if not await self._store.delete(organization_id, server_id):
            raise _no_such(f"mcp_server-{server_id}")
        await self._parts.client.forget(organization_id, server_id)

    async def tools(self, organization_id: UUID, server_id: UUID) -> list[Tool]:
        """Returns those of the catalogue, by name. Raises NotFound."""
        await self.get(organization_id, server_id)
        return await self._store.tools(organization_id, server_id)

    async def refresh(self, organization_id: UUID, user_id: UUID, server_id: UUID) -> RefreshSummary:
        """Reads its tools anew. Raises NotFound, McpProblem; what came of it is kept either way."""
        server = await self.get(organization_id, server_id)
        try:
            listing = await self.list_tools(self.target(organization_id, server))
        except McpProblem as problem:
            status, text = _state_after(server, problem)
            kept = SyncOutcome(status=status, problem=text, tool_problems=server.tool_problems)
            await self._store.note(organization_id, server_id, kept)
            raise
        changes = await self._sync(organization_id, user_id, server, listing.offers)
        outcome = SyncOutcome(status=Status.CONNECTED, tool_problems=listing.problems)
        await self._store.note(organization_id, server_id, outcome)
        return replace(changes, server=await self.get(organization_id, server_id))

    async def refresh_for_server(self, organization_id: UUID, server_id: UUID) -> None:
        """Reads its tools anew because it says that they changed, for who made it. Raises NotFound, McpProblem."""
        server = await self.get(organization_id, server_id)
        user_id = server.last_updated_by_id or server.created_by_id
        if user_id is not None:
            await self.refresh(organization_id, user_id, server_id)

    async def note_contact(self, organization_id: UUID, server: Server, problem: McpProblem | None) -> None:
        """Keeps what a call showed of a server: that it answered, or why it could not be used."""
        state = (Status.CONNECTED, "") if problem is None else _state_after(server, problem)
        if state != (server.status, server.problem):
            await self._store.note_contact(organization_id, server.id, *state)

    async def list_unsaved(self, organization_id: UUID, target: Target) -> tuple[list[Tool], ServerTools]:
        """Returns the tools of a server that is not stored, as they would be offered. Raises Refused, McpProblem."""
        await self._check(target.server.transport)
        listing = await self.list_tools(target)
        server = target.server
        chosen = server_tools.names(listing.offers, server.name, _BUILTIN)
        tools = [
            server_tools.tool_of(
                offer,
                tool_id=server_tools.id_of(organization_id, server.id, offer.name),
                name=chosen[offer.name],
                server_id=None,
                server=server.name,
            )
            for offer in listing.offers
        ]
        return tools, listing

    def target(self, organization_id: UUID, server: Server) -> Target:
        """Returns a stored server, spoken to with the tokens that were given for it."""
        url = server.transport.url if isinstance(server.transport, Http) else ""
        return Target(organization_id, server, self._parts.wallet.bearer(organization_id, server.id, url))

    async def list_tools(self, target: Target) -> ServerTools:
        """Returns what a server offers, looked at. Raises McpProblem."""
        return await self._parts.check.check(server_tools.read(await self._parts.client.tools(target)))

    async def _check(self, transport: Transport) -> None:
        if isinstance(transport, Stdio) and not self._parts.stdio:
            raise stdio_disabled()
        model.check(transport)
        if isinstance(transport, Http):
            try:
                safe_http = await import_lazily("services.common.safe_http")
                safe_http.check_url(transport.url, allow_private=self._parts.allow_private)
            except AddressRefused as refused:
                raise Refused(INVALID, f"server_url: {refused}") from None

    async def _sync(
        self, organization_id: UUID, user_id: UUID, server: Server, offered: Sequence[ServerTool]
    ) -> RefreshSummary:
        """Makes the catalogue what the server offers."""
        present = {tool.mcp_tool_name: tool for tool in await self._store.tools(organization_id, server.id)}
        new = [offer for offer in offered if offer.name not in present]
        added = [name for offer in new if (name := await self._add(organization_id, user_id, server, offer))]
        updated = []
        for offer in offered:
            tool = present.get(offer.name)
            if tool and (changed := refreshed_tool(tool, offer)):
                await self._parts.tools.update(organization_id, user_id, changed)
                updated.append(tool.name)
        kept = {offer.name for offer in offered}
        gone = [tool for name, tool in present.items() if name not in kept]
        await self._store.drop_tools(organization_id, server.id, [tool.id for tool in gone])
        return RefreshSummary(server, tuple(added), tuple(updated), tuple(tool.name for tool in gone))

    async def _add(self, organization_id: UUID, user_id: UUID, server: Server, offer: ServerTool) -> str:
        """Returns its name in the catalogue. Others may take names meanwhile."""
        tool_id = server_tools.id_of(organization_id, server.id, offer.name)
        taken = set(_BUILTIN)
        for _ in range(_ATTEMPTS):
            name = server_tools.names([offer], server.name, taken)[offer.name]
            tool = server_tools.tool_of(offer, tool_id=tool_id, name=name, server_id=server.id, server=server.name)
            try:
                return (await self._parts.tools.insert(organization_id, user_id, tool)).name
            except AlreadyExists:
                taken.add(name)
        return ""


def _state_after(server: Server, problem: McpProblem) -> tuple[Status, str]:
    text = Mask(masks.secrets_of(server.transport)).text(problem.message)[:_LONGEST_PROBLEM]
    return _STATUS.get(problem.kind, Status.FAILED), text


def refreshed_tool(tool: Tool, offer: ServerTool) -> Tool | None:
    """Returns the tool as its server has it now; None where nothing changed. A user's own description stays."""
    if tool.args_json_schema == offer.as_listed:
        return None
    before: Mapping[str, object] = server_tools.parsed(tool.args_json_schema)
    kept = tool.description != before.get("description", "")
    description = tool.description if kept else offer.description
    return replace(
        tool,
        description=description,
        json_schema=server_tools.schema_text(tool.name, description, offer.parameters),
        args_json_schema=offer.as_listed,
    )


def renamed_tool(tool: Tool, server: str) -> Tool:
    """Returns the tool of a server that has another name now."""
    before = server_tools.server_named_in(tool.metadata)
    tags = (server_tools.tag(server) if tag == server_tools.tag(before) else tag for tag in tool.tags)
    return replace(tool, tags=tuple(dict.fromkeys(tags)), metadata=server_tools.with_server_name(tool.metadata, server))


@dataclass(frozen=True, slots=True)
class TransportChange:
    """New values of a transport's fields, by their names in it. The kind cannot be changed."""

    kind: model.Kind
    fields: Mapping[str, object]

    def apply_to(self, present: Transport) -> Transport:
        """Raises Refused."""
        if self.kind is not present.kind:
            raise Refused(INVALID, f"mcp_server_type: the server is {present.kind}; make a new one for {self.kind}")
        written: Transport = replace(present, **self.fields)  # type: ignore[arg-type]
        return masks.unmask(written, present)

    def check_secrets_are_new(self, present: Transport) -> None:
        """Raises Refused where secrets of the present address would go to another, whose owner may have written it."""
        kept = {"auth_token": present.auth_token, "headers": present.headers} if isinstance(present, Http) else {}
        for name, value in kept.items():
            if value and (name not in self.fields or model.holds_mask(self.fields[name])):
                where = "custom_headers" if name == "headers" else name
                sentence = f"server_url leads to another server, which must not get {where} of this one: send them anew"
                raise Refused(INVALID, f"{where}: {sentence}, or empty")


_NOTHING = Http(kind=model.Kind.STREAMABLE_HTTP, url="")


def _origin(transport: Transport) -> tuple[str, str]:
    return origin(transport.url if isinstance(transport, Http) else "")


def _no_such(what: str) -> NotFound:
    return NotFound(f"MCP server {what} not found", reason="MCP_SERVER_NOT_FOUND")
