"""Loci's agents as tools of an MCP server, on the official SDK. Imported at the first request: it takes 36 MB.

Three tools for all agents (list_agents, send_message, read_memory), and one for each agent with the tag `mcp`.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import mcp_types as types
import orjson
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from gateway import VERSION
from gateway.resources.messages.requests import SendMessages
from gateway.resources.messages.responses import message
from gateway.rest.paging import MOST_PER_PAGE
from gateway.rest.services import Services
from gateway.settings import is_loopback
from gateway.turns.events import Interruption, TurnEvents
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import agent_pb2, agent_service_pb2, message_service_pb2, run_service_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import block_service_pb2
from services.common.errors import InvalidArgument, LociError
from services.common.ids import from_public, to_public, uuid7

TAG = "mcp"
_MOST_TOOLS = 200
_LONGEST_NAME = 48
_ALIVE_SECONDS = 15.0
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")
_LOOPBACK = ["127.0.0.1:*", "localhost:*", "[::1]:*", "127.0.0.1", "localhost"]
_INSTRUCTIONS = (
    "Agents with a memory of their own, who remember earlier conversations. Ask list_agents who there is, send_message "
    "to talk to one, and read_memory to see what it keeps in mind."
)

_TEXT = {"type": "string"}
_AGENT = {**_TEXT, "description": "The agent's id, or its name."}
_MESSAGE = {**_TEXT, "description": "What to say to the agent."}
_CONVERSATION = {**_TEXT, "description": "The id of one of its conversations; left out: its usual one."}

_FIRST = PageRequest(page_size=MOST_PER_PAGE)


class Unusable(Exception):
    """Arguments that a tool cannot do with; the text says why."""


def manager(loci: Services) -> StreamableHTTPSessionManager:
    """Returns the server; each request stands alone, so any replica takes it."""
    agents = _Agents(loci)
    server: Server[Any] = Server(
        "loci",
        version=VERSION,
        instructions=_INSTRUCTIONS,
        on_list_tools=agents.list_tools,
        on_call_tool=agents.call_tool,
    )
    return StreamableHTTPSessionManager(app=server, stateless=True, security_settings=_security(loci))


def _security(loci: Services) -> TransportSecuritySettings:
    """Returns the rule for hosts: where nobody is asked for a credential, no page may reach us under its own name."""
    asks = loci.settings.password or loci.settings.require_api_key
    guarded = not asks and is_loopback(loci.settings.host)
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=guarded,
        allowed_hosts=_LOOPBACK,
        allowed_origins=[f"http://{host}" for host in _LOOPBACK],
    )


class _Agents:
    """The tools. Each request is made for whoever is behind it: the call context comes along."""

    def __init__(self, loci: Services) -> None:
        self._loci = loci

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        """Returns the three, and those of agents with the tag."""
        tools = [
            _tool("list_agents", "The agents there are: id, name and description.", query=_query()),
            _tool(
                "send_message",
                "Say something to an agent and wait for its reply.",
                needed=("agent", "message"),
                agent=_AGENT,
                message=_MESSAGE,
                conversation_id=_CONVERSATION,
            ),
            _tool(
                "read_memory",
                "The memory blocks that an agent has in mind.",
                needed=("agent",),
                agent=_AGENT,
                label={**_TEXT, "description": "Only the block of this label."},
            ),
        ]
        for name, agent in await self._tagged():
            description = agent.description or f"Say something to the agent {agent.name} and wait for its reply."
            fields = {"message": _MESSAGE, "conversation_id": _CONVERSATION}
            tools.append(_tool(name, description, needed=("message",), **fields))
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Returns the result of a call; what goes wrong is a result that says so."""
        try:
            text = await self._called(context, params.name, params.arguments or {})
        except Unusable as unusable:
            return _result(str(unusable), is_error=True)
        except LociError as error:
            return _result(error.message, is_error=True)
        return _result(text)

    async def _called(self, context: Any, name: str, arguments: dict[str, Any]) -> str:
        match name:
            case "list_agents":
                return await self._list_agents(_text(arguments, "query", ""))
            case "send_message":
                agent = await self._named(_text(arguments, "agent"))
                return await self._say(context, agent.id, arguments)
            case "read_memory":
                return await self._read_memory(await self._named(_text(arguments, "agent")), arguments)
        for tool_name, agent in await self._tagged():
            if tool_name == name:
                return await self._say(context, agent.id, arguments)
        raise Unusable(f"there is no tool {name[:100]!r}")

    async def _list_agents(self, query: str) -> str:
        request = agent_service_pb2.ListAgentsRequest(page=_FIRST, query_text=query or None, omit_relations=True)
        agents = (await self._loci.peers.call(self._loci.peers.agents.ListAgents, request)).agents
        listed = [{"id": agent.id, "name": agent.name, "description": agent.description or None} for agent in agents]
        return orjson.dumps(listed).decode()

    async def _read_memory(self, agent: agent_pb2.Agent, arguments: dict[str, Any]) -> str:
        label = _text(arguments, "label", "")
        request = block_service_pb2.ListBlocksRequest(agent_id=agent.id, page=_FIRST)
        found = (await self._loci.peers.call(self._loci.peers.blocks.ListBlocks, request)).blocks
        blocks = [
            {"label": block.label, "description": block.description or None, "value": block.value}
            for block in found
            if label in ("", block.label)
        ]
        if label and not blocks:
            raise Unusable(f"{agent.name} has no block {label!r}")
        return orjson.dumps(blocks).decode()

    async def _say(self, context: Any, agent_id: str, arguments: dict[str, Any]) -> str:
        """Returns the agent's reply to a message, with progress while it is made."""
        turn = message_service_pb2.TurnRequest(
            agent_id=agent_id,
            conversation_id=_conversation(arguments),
            run_id=to_public("run", uuid7()),
            messages=[_user_message(_text(arguments, "message"))],
        )
        events = TurnEvents(self._loci.peers, turn=turn, tokens=False, window=self._loci.settings.reattach_window)
        try:
            async with _alive(context.session.report_progress) as tell:
                return await _reply(events, tell)
        except asyncio.CancelledError:
            await asyncio.shield(self._leave(agent_id, events.run_id))
            raise

    async def _leave(self, agent_id: str, run_id: str) -> None:
        """Whoever asked has gone: see LOCI_ON_DISCONNECT."""
        if self._loci.settings.cancel_on_disconnect and run_id:
            request = run_service_pb2.CancelRunsRequest(agent_id=agent_id, run_ids=[run_id])
            with contextlib.suppress(LociError):
                await self._loci.peers.call(self._loci.peers.runs.CancelRuns, request)

    async def _named(self, name: str) -> agent_pb2.Agent:
        """Returns the agent of that id, or that name where only one has it."""
        try:
            from_public("agent", name)
        except InvalidArgument:
            rpc_request = agent_service_pb2.ListAgentsRequest(
                page=PageRequest(page_size=2), name=name, omit_relations=True
            )
            agents = (await self._loci.peers.call(self._loci.peers.agents.ListAgents, rpc_request)).agents
            if len(agents) != 1:
                problem = "there is no agent" if not agents else "several agents are"
                raise Unusable(f"{problem} named {name[:100]!r}; list_agents tells ids") from None
            return agents[0]
        request = agent_service_pb2.GetAgentRequest(agent_id=name)
        return (await self._loci.peers.call(self._loci.peers.agents.GetAgent, request)).agent

    async def _tagged(self) -> list[tuple[str, agent_pb2.Agent]]:
        """Returns agents with the tag, oldest first, and the names of their tools."""
        page = PageRequest(page_size=_MOST_TOOLS, order=ORDER_ASCENDING)
        request = agent_service_pb2.ListAgentsRequest(page=page, tags=[TAG], omit_relations=True)
        agents = (await self._loci.peers.call(self._loci.peers.agents.ListAgents, request)).agents
        return list(zip(tool_names([agent.name for agent in agents]), agents, strict=True))


async def _reply(events: TurnEvents, tell: Callable[[str], Awaitable[None]]) -> str:
    texts: list[str] = []
    speech = SpeechRenderer()
    async for event in events.events():
        if isinstance(event, Interruption):
            continue
        match event.WhichOneof("event"):
            case "message":
                for one in map(message, speech.whole(event.message)):
                    if one["message_type"] == "assistant_message":
                        texts.append(_content(one["content"]))
                    await tell(_doing(one))
            case "end":
                return _end(event.end, texts)
    raise Unusable("the agent's turn ended without an end")


def _end(end: message_service_pb2.TurnEnd, texts: Sequence[str]) -> str:
    if end.HasField("error"):
        raise Unusable(f"the agent could not answer: {end.error.message}")
    reason = agent_pb2.StopReason.Name(end.stop_reason).removeprefix("STOP_REASON_").lower()
    if reason == "requires_approval":
        texts = [*texts, "[The agent waits for a person to approve a call of a tool.]"]
    return "\n\n".join(filter(None, texts)) or f"[The agent said nothing; its turn ended with {reason}.]"


def _doing(one: dict[str, Any]) -> str:
    calls = one.get("tool_calls") or []
    names = ", ".join(call["name"] for call in calls if isinstance(call, dict) and call.get("name"))
    return f"{one['message_type']}: {names}" if names else str(one["message_type"])


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))


@contextlib.asynccontextmanager
async def _alive(report: Callable[..., Awaitable[None]]) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """Reports what is told, and now and then that it goes on: clients give up on what is silent."""
    count, latest = 0, "working"

    async def tell(text: str) -> None:
        nonlocal count, latest
        count, latest = count + 1, text
        await report(count, None, text)

    async def go_on() -> None:
        while True:
            await asyncio.sleep(_ALIVE_SECONDS)
            await tell(latest)

    task = asyncio.create_task(go_on())
    try:
        yield tell
    finally:
        task.cancel()


def tool_names(names: Sequence[str]) -> list[str]:
    """Returns a name of a tool for each name of an agent, no two the same."""
    used = {"list_agents", "send_message", "read_memory"}
    chosen = []
    for name in names:
        valid = _FOREIGN.sub("_", name).strip("_")[:_LONGEST_NAME] or "agent"
        free, number = valid, 1
        while free in used:
            number += 1
            free = f"{valid[: _LONGEST_NAME - 4]}_{number}"
        used.add(free)
        chosen.append(free)
    return chosen


def _tool(name: str, description: str, needed: Sequence[str] = (), **properties: Any) -> types.Tool:
    schema = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    return types.Tool(name=name, description=description[:4_000], input_schema=schema)


def _query() -> dict[str, str]:
    return {**_TEXT, "description": "Only agents whose name or description has this in it."}


def _text(arguments: dict[str, Any], name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if not isinstance(value, str) or (not value.strip() and default is None) or "\0" in value:
        raise Unusable(f"{name} must be a text, and not empty")
    return value


def _conversation(arguments: dict[str, Any]) -> str:
    conversation_id = _text(arguments, "conversation_id", "")
    if conversation_id:
        try:
            from_public("conv", conversation_id)
        except InvalidArgument as error:
            raise Unusable(f"conversation_id: {error.message}") from None
    return conversation_id


def _user_message(text: str) -> Any:
    return SendMessages.model_validate({"input": text}).input_messages()[0]


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)
