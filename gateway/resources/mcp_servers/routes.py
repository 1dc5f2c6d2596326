"""MCP servers, by id, and their tools."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.errors.invalid import EXAMPLE_UUID
from gateway.openapi.answers import returns
from gateway.openapi.schemas import OBJECT, array
from gateway.resources.executions.schemas import EXECUTION_RESULT
from gateway.resources.mcp_servers import requests as bodies
from gateway.resources.mcp_servers.responses import (
    ASKING_SECONDS,
    changes_rest,
    connection,
    origin_of,
    result_rest,
    server_rest,
)
from gateway.resources.mcp_servers.schemas import MCP_CHANGES, MCP_RESOURCES, MCP_SERVER
from gateway.resources.tools.responses import tool_to_rest
from gateway.resources.tools.schemas import TOOL
from gateway.rest.body import dump
from gateway.rest.convert import from_json
from gateway.rest.event_frames import HEADERS
from gateway.rest.params import AgentFilter, ToolId, checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns.events import call_until_answered
from gateway.turns.idempotency import retry_of
from loci.tool.v1 import execution_service_pb2, mcp_pb2, mcp_service_pb2, tool_pb2
from services.common.errors import InvalidArgument, NotFound

router = APIRouter(prefix="/mcp-servers", tags=["mcp servers"])

McpServerId = Annotated[str, Path(examples=[f"mcp_server-{EXAMPLE_UUID}"]), checked_id("mcp_server")]
ResourceUri = Annotated[str, Query(min_length=1, max_length=8192, examples=["file:///notes.txt"])]


@router.post("")
@returns(MCP_SERVER)
async def create_mcp_server(body: bodies.CreateMcpServer, loci: Loci) -> Response:
    """Stores a server and reads its tools. One that does not answer is stored, too; `problem` says why."""
    bodies.check_whole(body.config)
    request = bodies.create_request(body.server_name, body.config)
    answer = await loci.peers.call(loci.peers.mcp_servers.CreateMcpServer, request, timeout=ASKING_SECONDS)
    return json_response(server_rest(answer.server))


@router.get("")
@returns(array(MCP_SERVER))
async def list_mcp_servers(loci: Loci) -> Response:
    """All servers, oldest first."""
    return json_response([server_rest(server) for server in await all_servers(loci)])


@router.get("/connect/{mcp_server_id}")
@returns(event=OBJECT)
async def connect_mcp_server(mcp_server_id: McpServerId, request: Request, loci: Loci) -> Response:
    """Connects, and leads through OAuth: events connection_attempt, oauth_required, authorization_url, ..."""
    rpc_request = mcp_service_pb2.StreamConnectRequest(id=mcp_server_id, callback_url=origin_of(request, loci))
    return await stream(loci, rpc_request)


@router.get("/{mcp_server_id}")
@returns(MCP_SERVER)
async def retrieve_mcp_server(mcp_server_id: McpServerId, loci: Loci) -> Response:
    """One server."""
    return json_response(server_rest(await fetch(loci, id=mcp_server_id)))


@router.patch("/{mcp_server_id}")
@returns(MCP_SERVER)
async def update_mcp_server(mcp_server_id: McpServerId, body: bodies.UpdateMcpServer, loci: Loci) -> Response:
    """Changes what the body names; its tools are those read before, until it is refreshed."""
    bodies.check_whole(body.config)
    server = await fetch(loci, id=mcp_server_id)
    return json_response(server_rest(await change(loci, server, body.config, body.server_name)))


@router.delete("/{mcp_server_id}", status_code=204)
@returns(status=204)
async def delete_mcp_server(mcp_server_id: McpServerId, loci: Loci) -> Response:
    """Deletes a server with its tools; agents that had them go on without."""
    try:
        await loci.peers.call(
            loci.peers.mcp_servers.DeleteMcpServer, mcp_service_pb2.DeleteMcpServerRequest(id=mcp_server_id)
        )
    except NotFound as error:  # the reference says 400 here
        raise InvalidArgument(f"MCP server with id {mcp_server_id} not found.", reason=error.reason) from None
    return Response(status_code=204)


@router.patch("/{mcp_server_id}/refresh")
@returns(MCP_CHANGES)
async def refresh_mcp_server(mcp_server_id: McpServerId, loci: Loci, agent_id: AgentFilter = None) -> Response:
    """Reads its tools anew: what came, what changed, what went. The agent makes no difference."""
    return json_response(changes_rest(await refresh(loci, mcp_server_id)))


@router.get("/{mcp_server_id}/tools")
@returns(array(TOOL))
async def list_mcp_tools(mcp_server_id: McpServerId, loci: Loci) -> Response:
    """Its tools, by name."""
    return json_response([tool_to_rest(tool) for tool in await tools_of(loci, mcp_server_id)])


@router.get("/{mcp_server_id}/tools/{tool_id}")
@returns(TOOL)
async def retrieve_mcp_tool(mcp_server_id: McpServerId, tool_id: ToolId, loci: Loci) -> Response:
    """One tool of it."""
    for tool in await tools_of(loci, mcp_server_id):
        if tool.id == tool_id.lower():
            return json_response(tool_to_rest(tool))
    raise NotFound(f"the MCP server has no tool {tool_id}", reason="TOOL_NOT_FOUND")


@router.post("/{mcp_server_id}/tools/{tool_id}/run")
@returns(EXECUTION_RESULT)
async def run_mcp_tool(
    mcp_server_id: McpServerId, tool_id: ToolId, request: Request, loci: Loci, body: bodies.RunTool | None = None
) -> Response:
    """Runs a tool of it, once, however often the request is repeated."""
    return json_response(result_rest(await run(loci, request, body, id=mcp_server_id, tool_id=tool_id)))


@router.get("/{mcp_server_id}/resources")
@returns(MCP_RESOURCES)
async def list_mcp_resources(mcp_server_id: McpServerId, loci: Loci) -> Response:
    """Its resources, and templates of more, as the server lists them."""
    request = mcp_service_pb2.ListMcpResourcesRequest(id=mcp_server_id)
    found = await loci.peers.call(loci.peers.mcp_servers.ListMcpResources, request, timeout=ASKING_SECONDS)
    resources, templates = from_json(found.resources_json), from_json(found.templates_json)
    return json_response({"resources": resources, "resource_templates": templates})


@router.get("/{mcp_server_id}/resources/read")
@returns(array(OBJECT))
async def read_mcp_resource(mcp_server_id: McpServerId, uri: ResourceUri, loci: Loci) -> Response:
    """The contents of a resource: each has `text`, or `blob` in base64."""
    request = mcp_service_pb2.ReadMcpResourceRequest(id=mcp_server_id, uri=uri)
    answer = await loci.peers.call(loci.peers.mcp_servers.ReadMcpResource, request, timeout=ASKING_SECONDS)
    return json_response(from_json(answer.contents_json))


@router.get("/{mcp_server_id}/prompts")
@returns(array(OBJECT))
async def list_mcp_prompts(mcp_server_id: McpServerId, loci: Loci) -> Response:
    """Its prompts, with the arguments that they take, as the server lists them."""
    request = mcp_service_pb2.ListMcpPromptsRequest(id=mcp_server_id)
    answer = await loci.peers.call(loci.peers.mcp_servers.ListMcpPrompts, request, timeout=ASKING_SECONDS)
    return json_response(from_json(answer.prompts_json))


@router.post("/{mcp_server_id}/prompts/get")
@returns(array(OBJECT))
async def get_mcp_prompt(mcp_server_id: McpServerId, body: bodies.GetPrompt, loci: Loci) -> Response:
    """The messages of a prompt."""
    request = mcp_service_pb2.GetMcpPromptRequest(id=mcp_server_id, name=body.name, arguments=body.arguments)
    answer = await loci.peers.call(loci.peers.mcp_servers.GetMcpPrompt, request, timeout=ASKING_SECONDS)
    return json_response(from_json(answer.messages_json))


async def all_servers(loci: Services) -> list[mcp_pb2.McpServer]:
    """Oldest first."""
    request = mcp_service_pb2.ListMcpServersRequest()
    return list((await loci.peers.call(loci.peers.mcp_servers.ListMcpServers, request)).servers)


async def fetch(loci: Services, **by: str) -> mcp_pb2.McpServer:
    """By id or name. Raises NotFound."""
    request = mcp_service_pb2.GetMcpServerRequest(**by)
    return (await loci.peers.call(loci.peers.mcp_servers.GetMcpServer, request)).server


async def change(
    loci: Services, server: mcp_pb2.McpServer, config: bodies.McpConfig | None, name: str | None
) -> mcp_pb2.McpServer:
    """Returns the server with its changes."""
    request = bodies.update_request(server, config, name)
    if request is None:
        return server
    answer = await loci.peers.call(loci.peers.mcp_servers.UpdateMcpServer, request, timeout=ASKING_SECONDS)
    return answer.server


async def refresh(loci: Services, server_id: str) -> mcp_service_pb2.RefreshMcpServerResponse:
    """Returns the tools of a server, read anew."""
    request = mcp_service_pb2.RefreshMcpServerRequest(id=server_id)
    return await loci.peers.call(loci.peers.mcp_servers.RefreshMcpServer, request, timeout=ASKING_SECONDS)


async def tools_of(loci: Services, server_id: str) -> list[tool_pb2.Tool]:
    """By name."""
    request = mcp_service_pb2.ListMcpToolsRequest(id=server_id)
    return list((await loci.peers.call(loci.peers.mcp_servers.ListMcpTools, request)).tools)


async def run(
    loci: Services, request: Request, body: bodies.RunTool | None, **which: str
) -> execution_service_pb2.Receipt:
    """Runs a tool, named by `which` fields of RunMcpToolRequest."""
    rpc_request = mcp_service_pb2.RunMcpToolRequest(
        arguments_json=dump(body.args if body else {}),
        call_key=f"mcp/{loci.call_keys.of(await retry_of(request), request.scope['path'])}",
        **which,
    )
    window = loci.settings.reattach_window
    answer = await call_until_answered(loci.peers.mcp_servers.RunMcpTool, rpc_request, window=window)
    return answer.receipt


async def stream(loci: Services, request: mcp_service_pb2.StreamConnectRequest) -> Response:
    """Returns the events of a connection. Raises LociError where it cannot begin."""
    frames = connection(loci, request)
    try:
        first = await anext(frames)
    except BaseException:
        await frames.aclose()
        raise
    return StreamingResponse(_after(first, frames), media_type="text/event-stream", headers=HEADERS)


async def _after(first: bytes, frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for one in frames:
            yield one
    finally:
        await frames.aclose()
