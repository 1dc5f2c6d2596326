"""MCP servers and what comes of them, as REST."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import orjson
from starlette.requests import Request

from gateway.access.run_tokens import sees_secrets
from gateway.peers import stream
from gateway.rest.convert import Rest, from_json, moment
from gateway.rest.event_frames import frame
from gateway.rest.services import Services
from loci.tool.v1 import execution_service_pb2, mcp_pb2, mcp_service_pb2, tool_pb2
from services.common.core.secret_names import MASK, mask_arguments
from services.common.errors import LociError
from services.common.fields import enum_names

# Connecting, listing and installing may take as long as the tool runner lets them.
ASKING_SECONDS = 100.0
_BEGIN_PATH = "/v1/tools/mcp/oauth/begin"
_EVENTS = enum_names(mcp_service_pb2.McpConnectEvent.DESCRIPTOR)
_STATUSES = enum_names(mcp_pb2.McpStatus.DESCRIPTOR)


def server_rest(server: mcp_pb2.McpServer) -> Rest:
    """Returns the reference's StreamableHTTPMcpServer, SseMcpServer or StdioMcpServer.

    Of Loci's own there is what says something: how a server is that is not connected, and which tools are left out.
    """
    rest = {
        "id": server.id,
        "server_name": server.name,
        "mcp_server_type": server.transport.WhichOneof("transport"),
        **_fields(server.transport),
    }
    if server.status in (mcp_pb2.MCP_STATUS_OAUTH_REQUIRED, mcp_pb2.MCP_STATUS_FAILED):
        rest |= {"status": _STATUSES.get(server.status), "problem": server.problem or None}
        if server.HasField("synced_at"):
            rest["synced_at"] = moment(server.synced_at)
    if server.tool_problems:
        rest["tool_problems"] = _problems(server)
    if metadata := from_json(server.metadata_json):
        rest["metadata_"] = metadata
    return rest


def named_rest(server: mcp_pb2.McpServer) -> Rest:
    """Returns the reference's older SSEServerConfig, StreamableHTTPServerConfig or StdioServerConfig."""
    return {
        "server_name": server.name,
        "type": server.transport.WhichOneof("transport"),
        **_fields(server.transport),
    }


def _problems(server: mcp_pb2.McpServer) -> list[Rest]:
    return [{"name": one.name, "problem": one.problem} for one in server.tool_problems]


def _fields(transport: mcp_pb2.McpTransport) -> Rest:
    if transport.HasField("stdio"):
        program = transport.stdio
        network = from_json(program.network_json)
        args = list(program.args if sees_secrets() else mask_arguments(program.args))
        rest = {"command": program.command, "args": args, "env": _visible(program.env)}
        return rest | ({"network": network} if network else {}) | ({"paths": [*program.paths]} if program.paths else {})
    http = transport.sse if transport.HasField("sse") else transport.streamable_http
    return {
        "server_url": http.server_url,
        "auth_header": http.auth_header or None,
        "auth_token": (http.auth_token if sees_secrets() else MASK) if http.auth_token else None,
        "custom_headers": _visible(http.custom_headers),
    }


def _visible(values: Mapping[str, str]) -> dict[str, str] | None:
    """Returns the values as the tool runner gives them; masked for roles that see no secrets."""
    return (dict(values) if sees_secrets() else dict.fromkeys(values, MASK)) or None


def mcp_tool_rest(tool: tool_pb2.Tool) -> Rest:
    """Returns the reference's older MCPTool: a tool as its server lists it."""
    schema = from_json(tool.args_json_schema_json) or {}
    described = schema.pop("description", "") or tool.description
    return {
        "name": tool.mcp_tool_name or tool.name,
        "title": None,
        "description": described,
        "inputSchema": schema,
        "outputSchema": None,
        "annotations": None,
        "_meta": None,
    }


def unhealthy_rest(problem: mcp_pb2.McpToolProblem) -> Rest:
    """Returns a tool of a server that cannot be offered, as an older MCPTool."""
    rest: Rest = dict.fromkeys(("title", "outputSchema", "annotations", "_meta"))
    return {
        "name": problem.name,
        "description": "",
        "inputSchema": {},
        **rest,
        "health": {"status": "INVALID", "reasons": [problem.problem]},
    }


def result_rest(receipt: execution_service_pb2.Receipt) -> Rest:
    """Returns the reference's ToolExecutionResult."""
    return {
        "status": "success" if _succeeded(receipt) else "error",
        "func_return": _value(receipt),
        "agent_state": None,
        # What a server logs meanwhile; it has no stderr.
        "stdout": [receipt.stdout] if receipt.stdout else None,
        "stderr": None,
        "sandbox_config_fingerprint": None,
    }


def named_result_rest(receipt: execution_service_pb2.Receipt) -> Rest:
    """Returns the answer of the reference's older execute."""
    return {"result": _value(receipt), "success": _succeeded(receipt)}


def _succeeded(receipt: execution_service_pb2.Receipt) -> bool:
    return receipt.outcome == execution_service_pb2.OUTCOME_SUCCESS


def _value(receipt: execution_service_pb2.Receipt) -> Any:
    if _succeeded(receipt) and receipt.result_json:
        # Larger numbers than ours can hold stay as the text has them.
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(receipt.result_json)
    return receipt.tool_return


def changes_rest(answer: mcp_service_pb2.RefreshMcpServerResponse) -> Rest:
    """Returns the changes of a refresh."""
    changes: Rest = {name: list(getattr(answer, name)) for name in ("added", "updated", "deleted")}
    return changes | ({"tool_problems": _problems(answer.server)} if answer.server.tool_problems else {})


def origin_of(request: Request, loci: Services) -> str:
    """Returns the origin at which the user's browser reaches us."""
    return loci.settings.public_url or f"{request.url.scheme}://{request.url.netloc}"


async def connection(loci: Services, request: mcp_service_pb2.StreamConnectRequest) -> AsyncGenerator[bytes, None]:
    """Yields the events of a connection, framed. Raises LociError, before the first one."""
    call = loci.peers.mcp_servers.StreamConnect(request, wait_for_ready=True)
    answered = False
    try:
        async with stream(call) as events:
            async for event in events:
                answered = True
                yield frame(_event(event, request.callback_url))
    except LociError as error:
        if not answered:
            raise
        yield frame({"event": "error", "message": error.message})


def _event(event: mcp_service_pb2.StreamConnectResponse, origin: str) -> Rest:
    rest: Rest = {"event": _EVENTS.get(event.event), "message": event.message}
    if event.url:
        # Not the authorization server's own: our page says first who asks for what.
        rest |= {"url": f"{origin}{_BEGIN_PATH}?state={quote(event.state)}", "session_id": event.session_id}
    if event.event == mcp_service_pb2.MCP_CONNECT_EVENT_SUCCESS:
        rest["tools"] = [mcp_tool_rest(tool) for tool in event.tools]
    return rest
