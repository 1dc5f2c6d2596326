"""The catalogue of tools."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, OBJECT, WHOLE, array
from gateway.resources.sandbox_configs.schemas import VARIABLES
from gateway.resources.tools import requests as bodies
from gateway.resources.tools.generation import generate_tool_source
from gateway.resources.tools.renames import rules_follow
from gateway.resources.tools.responses import catalogued_tool_to_rest, tool_hit_to_rest
from gateway.resources.tools.schemas import CATALOGUED, TOOL_HIT, WRITTEN_TOOL
from gateway.rest import convert
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import Names, ToolId, split
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import sandbox_config_service_pb2, tool_pb2, tool_service_pb2
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from services.common.fields import enum_numbers
from services.common.ids import to_public, uuid7

router = APIRouter(prefix="/tools", tags=["tools"])

# How a search was made: `fts` where no embedding model answered.
SEARCH_MODE_HEADER = "x-search-mode"
_TYPES = enum_numbers(tool_pb2.ToolType.DESCRIPTOR)
_LETTA_TYPES = [name for name in _TYPES if name.startswith("letta_")]


@dataclass(frozen=True)
class _Filter:
    """The filters that lists and counts share; None: nothing can match."""

    request: tool_service_pb2.ListToolsRequest | None


async def _filter(
    name: str | None = None,
    names: Names = None,
    tool_ids: Names = None,
    search: str | None = None,
    tool_types: Names = None,
    exclude_tool_types: Names = None,
    return_only_letta_tools: bool | None = False,
    exclude_letta_tools: bool | None = False,
) -> _Filter:
    kinds, unwanted = split(tool_types), split(exclude_tool_types)
    if return_only_letta_tools:
        kinds = [kind for kind in kinds or _LETTA_TYPES if kind in _LETTA_TYPES]
        if not kinds:
            return _Filter(None)
    if exclude_letta_tools:
        unwanted = [*unwanted, *_LETTA_TYPES]
    request = tool_service_pb2.ListToolsRequest(
        name=name,
        names=split(names),
        tool_ids=split(tool_ids),
        tool_types=_numbers("query", "tool_types", kinds),
        exclude_tool_types=_numbers("query", "exclude_tool_types", unwanted),
        search=search,
    )
    return _Filter(request)


Filter = Annotated[_Filter, Depends(_filter)]


@router.post("")
@returns(CATALOGUED)
async def create_tool(body: bodies.CreateTool, loci: Loci) -> Response:
    """Creates a tool from source, or replaces the one of that name. Name and schema come from the function in it."""
    request = tool_service_pb2.CreateToolRequest(tool_id=to_public("tool", uuid7()), tool=body.message())
    try:
        with _script_errors(request.tool):
            response = await loci.peers.call(loci.peers.tools.CreateTool, request)
    except AlreadyExists:
        return await _upsert(body, loci)
    try:
        return await _answer(response.tool, body, loci, response.warnings)
    except InvalidArgument:
        # Its variables were refused: then it is not to be there, either.
        await loci.peers.call(loci.peers.tools.DeleteTool, tool_service_pb2.DeleteToolRequest(tool_id=response.tool.id))
        raise


@router.put("")
@returns(CATALOGUED)
async def upsert_tool(body: bodies.CreateTool, loci: Loci) -> Response:
    """Creates a tool, or replaces the one of that name."""
    return await _upsert(body, loci)


@router.get("")
@returns(array(CATALOGUED))
@paged(50)
async def list_tools(
    loci: Loci,
    filters: Filter,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """A page of tools, newest first."""
    if filters.request is None:
        return json_response([])
    request = tool_service_pb2.ListToolsRequest(page=page)
    request.MergeFrom(filters.request)
    response = await loci.peers.call(loci.peers.tools.ListTools, request)
    return json_response([catalogued_tool_to_rest(tool) for tool in response.tools])


@router.get("/count")
@returns(WHOLE)
async def count_tools(loci: Loci, filters: Filter) -> Response:
    """How many tools there are, with the filters of the list."""
    if filters.request is None:
        return json_response(0)
    request = tool_service_pb2.CountToolsRequest(filter=filters.request)
    return json_response((await loci.peers.call(loci.peers.tools.CountTools, request)).count)


@router.post("/search")
@returns(array(TOOL_HIT))
async def search_tools(body: bodies.SearchTools, loci: Loci) -> Response:
    """Tools by words and by meaning, best first; without a query the newest."""
    request = bodies.search_request(body, [*_numbers("body", "tool_types", body.tool_types or [])])
    response = await loci.peers.call(loci.peers.tools.SearchTools, request)
    headers = {SEARCH_MODE_HEADER: bodies.MODE_NAMES.get(response.mode, "hybrid")}
    return json_response([tool_hit_to_rest(hit) for hit in response.hits], headers=headers)


@router.post("/add-base-tools")
@returns(array(CATALOGUED))
async def add_base_tools(loci: Loci) -> Response:
    """Brings the tools that ship with Loci up to date, and lists them. Agents find them there without this."""
    request = tool_service_pb2.EnsureBaseToolsRequest()
    response = await loci.peers.call(loci.peers.tools.EnsureBaseTools, request)
    return json_response([catalogued_tool_to_rest(tool) for tool in response.tools])


@router.post("/generate-schema")
@returns(OBJECT)
async def generate_schema(body: bodies.GenerateSchema, loci: Loci) -> Response:
    """The schema that a tool of this source would have. Nothing is stored, nothing is run."""
    request = bodies.schema_request(body)
    response = await loci.peers.call(loci.peers.tools.GenerateToolSchema, request)
    return json_response(convert.from_json(response.json_schema_json))


@router.post("/import")
@returns(CATALOGUED)
async def import_tool(body: bodies.ImportTool, loci: Loci) -> Response:
    """Makes a tool of another library, described by its own schema, one of ours; replaces the one of that name."""
    request = bodies.import_request(body)
    imported = await loci.peers.call(loci.peers.tools.ImportTool, request)
    return await _answer(imported.tool, body, loci, imported.warnings)


@router.post("/generate-tool")
@returns(WRITTEN_TOOL)
async def generate_tool(body: bodies.WriteTool, loci: Loci) -> Response:
    """Asks a model to write a tool, and shows it; nothing is stored, nothing is run."""
    handle = body.handle or loci.settings.default_model
    return json_response(await generate_tool_source(loci.peers, body, handle))


@router.get("/{tool_id}")
@returns(CATALOGUED)
async def retrieve_tool(tool_id: ToolId, loci: Loci) -> Response:
    """One tool."""
    request = tool_service_pb2.GetToolRequest(tool_id=tool_id)
    return json_response(catalogued_tool_to_rest((await loci.peers.call(loci.peers.tools.GetTool, request)).tool))


@router.get("/{tool_id}/environment-variables")
@returns(VARIABLES)
async def list_environment_variables(tool_id: ToolId, loci: Loci) -> Response:
    """The environment variables that a tool's calls have of the tool itself, values masked."""
    await loci.peers.call(loci.peers.tools.GetTool, tool_service_pb2.GetToolRequest(tool_id=tool_id))
    owner = sandbox_config_service_pb2.Owner(tool_id=tool_id)
    request = sandbox_config_service_pb2.BatchGetEnvironmentsRequest(owners=[owner])
    response = await loci.peers.call(loci.peers.sandbox_configs.BatchGetEnvironments, request)
    return json_response([{"key": each.key, "value": each.value} for each in response.variables])


@router.patch("/{tool_id}")
@returns(CATALOGUED)
async def update_tool(tool_id: ToolId, body: bodies.UpdateTool, loci: Loci) -> Response:
    """Changes what the body names. A schema with another name renames the tool, and rules of agents follow."""
    request = bodies.update_request(tool_id, body)
    if request is None:
        response = await loci.peers.call(loci.peers.tools.GetTool, tool_service_pb2.GetToolRequest(tool_id=tool_id))
        return await _answer(response.tool, body, loci)
    async with rules_follow(loci, request):
        updated = await loci.peers.call(loci.peers.tools.UpdateTool, request)
    return await _answer(updated.tool, body, loci, updated.warnings)


@router.delete("/{tool_id}")
@returns(NULL)
async def delete_tool(tool_id: ToolId, loci: Loci) -> Response:
    """Deletes a tool; agents that had it go on without it. A built-in one is back with the next list."""
    request = tool_service_pb2.DeleteToolRequest(tool_id=tool_id)
    try:
        await loci.peers.call(loci.peers.tools.DeleteTool, request)
    except NotFound as error:  # the reference says 400 here
        raise InvalidArgument(f"Tool with id {tool_id} not found.", reason=error.reason) from None
    return json_response(None)


async def _answer(tool: tool_pb2.Tool, body: bodies.ToolSettings, loci: Loci, warnings: Sequence[str] = ()) -> Response:
    """Returns a tool just written, once it has the variables that came along."""
    rest = catalogued_tool_to_rest(tool)
    if warnings:
        rest["warnings"] = list(warnings)
    if body.environment is not None:
        request = bodies.environment_request(tool.id, body.environment)
        stored = await loci.peers.call(loci.peers.sandbox_configs.SetEnvironment, request)
        rest["environment"] = {variable.key: variable.value for variable in stored.variables}
    return json_response(rest)


async def _upsert(body: bodies.CreateTool, loci: Services) -> Response:
    request = tool_service_pb2.UpsertToolRequest(tool=body.message())
    with _script_errors(request.tool):
        response = await loci.peers.call(loci.peers.tools.UpsertTool, request)
    return await _answer(response.tool, body, loci, response.warnings)


@contextmanager
def _script_errors(draft: tool_pb2.Tool) -> Iterator[None]:
    """Makes the error 422, as in the reference, for a script of which neither types nor json_schema say enough."""
    try:
        yield
    except InvalidArgument as error:
        if draft.source_type not in ("typescript", "javascript") or draft.json_schema_json:
            raise
        raise InvalidRequest(f"{error.message}, or send json_schema", "body") from None


def _numbers(where: str, parameter: str, names: Sequence[str]) -> "list[tool_pb2.ToolType.ValueType]":
    unknown = next((name for name in names if name not in _TYPES), None)
    if unknown is not None:
        raise InvalidRequest(f"`{parameter}`: {unknown[:80]!r} is not one of {', '.join(_TYPES)}", where, parameter)
    return [tool_pb2.ToolType.ValueType(_TYPES[name]) for name in names]
