"""MCP servers and what comes of them, as REST."""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
from starlette.requests import Request

from gateway.peers import stream
from gateway.rest.convert import Rest, from_json, moment
from gateway.rest.services import Services
from gateway.turns.sse import frame
from loci.tool.v1 import execution_service_pb2, mcp_pb2, mcp_service_pb2, tool_pb2
from services.common.errors import LociError
from services.common.fields import enum_names

# Connecting, listing and installing may take as long as the tool runner lets them.
ASKING_SECONDS = 100.0
_EVENTS = enum_names(mcp_service_pb2.McpConnectEvent.DESCRIPTOR)
_STATUSES = enum_names(mcp_pb2.McpStatus.DESCRIPTOR)


def server_rest(server: mcp_pb2.McpServer) -> Rest:
    """Returns the reference's StreamableHTTPMcpServer, SseMcpServer or StdioMcpServer, and how the server is."""
    return {
        "id": server.id,
        "server_name": server.name,
        "mcp_server_type": server.transport.WhichOneof("transport"),
        **_fields(server.transport),
        "status": _STATUSES.get(server.status),
        "problem": server.problem or None,
        "tool_problems": [{"name": one.name, "problem": one.problem} for one in server.tool_problems],
        "synced_at": moment(server.synced_at) if server.HasField("synced_at") else None,
        "metadata_": from_json(server.metadata_json) or {},
    }


def named_rest(server: mcp_pb2.McpServer) -> Rest:
    """Returns the reference's older SSEServerConfig, StreamableHTTPServerConfig or StdioServerConfig."""
    kind, fields = server.transport.WhichOneof("transport"), _fields(server.transport)
    rest = {"server_name": server.name, "type": kind, **fields}
    if kind == "stdio":
        rest["stdio_config"] = {"server_name": server.name, "type": kind, **fields}
    return rest


def _fields(transport: mcp_pb2.McpTransport) -> Rest:
    if transport.HasField("stdio"):
        program = transport.stdio
        network = from_json(program.network_json)
        return {
            "command": program.command,
            "args": list(program.args),
            "env": dict(program.env) or None,
            "network": network or {},
        }
    http = transport.sse if transport.HasField("sse") else transport.streamable_http
    return {
        "server_url": http.server_url,
        "auth_header": http.auth_header or None,
        "auth_token": http.auth_token or None,
        "custom_headers": dict(http.custom_headers) or None,
    }


def mcp_tool_rest(tool: tool_pb2.Tool) -> Rest:
    """Returns the reference's older MCPTool: a tool as its server lists it."""
    schema = from_json(tool.args_json_schema_json) or {}
    described = schema.pop("description", "") or tool.description
    origin = (from_json(tool.metadata_json) or {}).get("mcp") or {}
    return {
        "name": origin.get("tool_name") or tool.name,
        "title": None,
        "description": described,
        "inputSchema": schema,
        "outputSchema": None,
        "annotations": None,
        "_meta": None,
        "health": {"status": "STRICT_COMPLIANT", "reasons": []},
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
    success = receipt.outcome == execution_service_pb2.OUTCOME_SUCCESS
    value: Any = receipt.tool_return
    if success and receipt.result_json:
        try:
            value = orjson.loads(receipt.result_json)
        except orjson.JSONDecodeError:  # larger numbers than ours can hold
            value = receipt.tool_return
    return {
        "status": "success" if success else "error",
        "func_return": value,
        "agent_state": None,
        "stdout": receipt.stdout.splitlines(),
        "stderr": receipt.stderr.splitlines(),
        "sandbox_config_fingerprint": None,
    }


def changes_rest(answer: mcp_service_pb2.RefreshMcpServerResponse) -> Rest:
    """Returns the changes of a refresh."""
    problems = server_rest(answer.server)["tool_problems"]
    changes = {name: list(getattr(answer, name)) for name in ("added", "updated", "deleted")}
    return {**changes, "tool_problems": problems}


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
                yield frame(_event(event))
    except LociError as error:
        if not answered:
            raise
        yield frame({"event": "error", "message": error.message})


def _event(event: mcp_service_pb2.StreamConnectResponse) -> Rest:
    rest: Rest = {"event": _EVENTS.get(event.event), "message": event.message}
    if event.url:
        rest |= {"url": event.url, "session_id": event.session_id}
    if event.event == mcp_service_pb2.MCP_CONNECT_EVENT_SUCCESS:
        rest["tools"] = [mcp_tool_rest(tool) for tool in event.tools]
    return rest
