"""The catalogue of tools."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import Response

from gateway import convert
from gateway.bodies import tools as bodies
from gateway.body import JsonRoute
from gateway.errors import InvalidRequest
from gateway.params import Cursor, Limit, Names, Order, ToolId, page_size, split
from gateway.responses import json_response
from gateway.services import Loci
from loci.tool.v1 import tool_pb2, tool_service_pb2
from services.common.ids import to_public, uuid7

router = APIRouter(prefix="/tools", tags=["tools"], route_class=JsonRoute)

_TYPES = convert.enum_numbers(tool_pb2.ToolType.DESCRIPTOR)
_LETTA_TYPES = [name for name in _TYPES if name.startswith("letta_")]


@router.post("")
async def create_tool(body: bodies.CreateTool, loci: Loci) -> Response:
    """Creates a tool from source; its name and schema come from the function in it."""
    request = tool_service_pb2.CreateToolRequest(tool_id=to_public("tool", uuid7()), tool=bodies.draft_of(body))
    return json_response(convert.tool((await loci.peers.call(loci.peers.tools.CreateTool, request)).tool))


@router.put("")
async def upsert_tool(body: bodies.CreateTool, loci: Loci) -> Response:
    """Creates a tool, or replaces the one of that name."""
    request = tool_service_pb2.UpsertToolRequest(tool=bodies.draft_of(body))
    return json_response(convert.tool((await loci.peers.call(loci.peers.tools.UpsertTool, request)).tool))


@router.get("")
async def list_tools(
    loci: Loci,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    order: Order = "desc",
    name: str | None = None,
    names: Names = None,
    tool_ids: Names = None,
    search: str | None = None,
    tool_types: Names = None,
    exclude_tool_types: Names = None,
    return_only_letta_tools: bool | None = False,
) -> Response:
    """A page of tools, newest first."""
    wanted = split(tool_types)
    if return_only_letta_tools:
        wanted = [kind for kind in wanted or _LETTA_TYPES if kind in _LETTA_TYPES]
        if not wanted:
            return json_response([])
    page = await loci.peers.call(
        loci.peers.tools.ListTools,
        tool_service_pb2.ListToolsRequest(
            page_size=page_size(limit, 50),
            after=after,
            before=before,
            ascending=order == "asc",
            name=name,
            names=split(names),
            tool_ids=split(tool_ids),
            tool_types=_numbers("tool_types", wanted),
            exclude_tool_types=_numbers("exclude_tool_types", split(exclude_tool_types)),
            search=search,
        ),
    )
    return json_response([convert.tool(tool) for tool in page.tools])


@router.get("/{tool_id}")
async def retrieve_tool(tool_id: ToolId, loci: Loci) -> Response:
    """One tool."""
    request = tool_service_pb2.GetToolRequest(tool_id=tool_id)
    return json_response(convert.tool((await loci.peers.call(loci.peers.tools.GetTool, request)).tool))


@router.patch("/{tool_id}")
async def update_tool(tool_id: ToolId, body: bodies.UpdateTool, loci: Loci) -> Response:
    """Changes what the body names."""
    request = bodies.update_request(tool_id, body)
    if request is None:
        return await retrieve_tool(tool_id, loci)
    return json_response(convert.tool((await loci.peers.call(loci.peers.tools.UpdateTool, request)).tool))


@router.delete("/{tool_id}")
async def delete_tool(tool_id: ToolId, loci: Loci) -> Response:
    """Deletes a tool; agents that had it go on without it."""
    request = tool_service_pb2.DeleteToolRequest(tool_id=tool_id)
    await loci.peers.call(loci.peers.tools.DeleteTool, request)
    return json_response(None)


def _numbers(parameter: str, names: Sequence[str]) -> "list[tool_pb2.ToolType.ValueType]":
    unknown = next((name for name in names if name not in _TYPES), None)
    if unknown is not None:
        raise InvalidRequest(f"`{parameter}`: {unknown[:80]!r} is not one of {', '.join(_TYPES)}", "query", parameter)
    return [tool_pb2.ToolType.ValueType(_TYPES[name]) for name in names]
