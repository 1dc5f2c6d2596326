"""MCP servers by name: the reference's older routes."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import OBJECT, array, by_name
from gateway.resources.mcp_servers import requests as bodies
from gateway.resources.mcp_servers.responses import (
    ASKING_SECONDS,
    changes_rest,
    mcp_tool_rest,
    named_rest,
    named_result_rest,
    origin_of,
    unhealthy_rest,
)
from gateway.resources.mcp_servers.routes import (
    all_servers,
    change,
    fetch,
    refresh,
    run,
    stream,
    tools_of,
)
from gateway.resources.mcp_servers.schemas import MCP_CHANGES, MCP_RESULT, MCP_TESTED, MCP_TOOL, NAMED_SERVER
from gateway.resources.tools.responses import tool_to_rest
from gateway.resources.tools.schemas import TOOL
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.tool.v1 import mcp_pb2, mcp_service_pb2
from services.common.errors import InvalidArgument, NotFound

router = APIRouter(prefix="/tools/mcp", tags=["mcp servers"])


@router.get("/servers")
@returns(by_name(NAMED_SERVER))
async def list_named_servers(loci: Loci) -> Response:
    """All servers by their names."""
    return json_response({server.name: named_rest(server) for server in await all_servers(loci)})


@router.put("/servers")
@returns(array(NAMED_SERVER))
async def add_named_server(body: bodies.NamedMcpServer, loci: Loci) -> Response:
    """Stores a server and reads its tools; answers with all servers."""
    request = bodies.create_request(body.server_name, body)
    await loci.peers.call(loci.peers.mcp_servers.CreateMcpServer, request, timeout=ASKING_SECONDS)
    return json_response([named_rest(server) for server in await all_servers(loci)])


@router.post("/servers/test")
@returns(MCP_TESTED)
async def test_server(body: bodies.NamedMcpServer, loci: Loci) -> Response:
    """Asks a server for its tools; nothing is stored."""
    request = mcp_service_pb2.TestMcpServerRequest(transport=bodies.transport(body))
    answer = await loci.peers.call(loci.peers.mcp_servers.TestMcpServer, request, timeout=ASKING_SECONDS)
    tools = [mcp_tool_rest(tool) for tool in answer.tools] + [unhealthy_rest(one) for one in answer.tool_problems]
    return json_response({"status": "success", "tools": tools})


@router.post("/servers/connect")
@returns(event=OBJECT)
async def connect_server(body: bodies.NamedMcpServer, request: Request, loci: Loci) -> Response:
    """Connects to a server that is not stored, or to the stored one of that name; see GET /mcp-servers/connect."""
    stored = next((server.id for server in await all_servers(loci) if server.name == body.server_name), "")
    rpc_request = mcp_service_pb2.StreamConnectRequest(
        id=stored,
        name=body.server_name,
        transport=None if stored else bodies.transport(body),
        callback_url=origin_of(request, loci),
    )
    return await stream(loci, rpc_request)


@router.patch("/servers/{mcp_server_name}")
@returns(NAMED_SERVER)
async def update_named_server(mcp_server_name: str, body: bodies.NamedMcpServer, loci: Loci) -> Response:
    """Changes what the body names, but for the name."""
    server = await _named(loci, mcp_server_name)
    return json_response(named_rest(await change(loci, server, body, None)))


@router.delete("/servers/{mcp_server_name}")
@returns(array(NAMED_SERVER))
async def delete_named_server(mcp_server_name: str, loci: Loci) -> Response:
    """Deletes a server with its tools; answers with the servers that are left."""
    server = await _named(loci, mcp_server_name)
    await loci.peers.call(loci.peers.mcp_servers.DeleteMcpServer, mcp_service_pb2.DeleteMcpServerRequest(id=server.id))
    return json_response([named_rest(server) for server in await all_servers(loci)])


@router.get("/servers/{mcp_server_name}/tools")
@returns(array(MCP_TOOL))
async def list_named_tools(mcp_server_name: str, loci: Loci) -> Response:
    """The tools that it offers, and those of its tools that cannot be offered, with the reasons."""
    server = await _named(loci, mcp_server_name)
    tools = [mcp_tool_rest(tool) for tool in await tools_of(loci, server.id)]
    return json_response(tools + [unhealthy_rest(problem) for problem in server.tool_problems])


@router.post("/servers/{mcp_server_name}/resync")
@returns(MCP_CHANGES)
async def resync_named_server(mcp_server_name: str, loci: Loci, agent_id: str | None = None) -> Response:
    """Reads its tools anew. The agent makes no difference."""
    server = await _named(loci, mcp_server_name)
    return json_response(changes_rest(await refresh(loci, server.id)))


@router.post("/servers/{mcp_server_name}/tools/{tool_name}/execute")
@returns(MCP_RESULT)
async def execute_named_tool(
    mcp_server_name: str, tool_name: str, request: Request, loci: Loci, body: bodies.RunTool | None = None
) -> Response:
    """Runs a tool of it, once, however often the request is repeated."""
    server = await _named(loci, mcp_server_name)
    return json_response(named_result_rest(await run(loci, request, body, id=server.id, tool_name=tool_name)))


@router.post("/servers/{mcp_server_name}/{mcp_tool_name}")
@returns(TOOL)
async def add_named_tool(mcp_server_name: str, mcp_tool_name: str, loci: Loci) -> Response:
    """The tool of the catalogue; all of a server are there already, and one that is not is looked for anew."""
    server = await _named(loci, mcp_server_name)
    for attempt in range(2):
        for tool in await tools_of(loci, server.id):
            if mcp_tool_name in (mcp_tool_rest(tool)["name"], tool.name):
                return json_response(tool_to_rest(tool))
        if attempt == 0:
            await refresh(loci, server.id)
    raise NotFound(f"MCP server {mcp_server_name!r} has no tool {mcp_tool_name!r}", reason="TOOL_NOT_FOUND")


async def _named(loci: Services, name: str) -> mcp_pb2.McpServer:
    """Returns the server; raises InvalidArgument where there is none, as the reference does."""
    try:
        return await fetch(loci, name=name)
    except NotFound as error:
        raise InvalidArgument(error.message, reason=error.reason) from None
