"""Tools. Agents get those of the same names where this server has its own, or had one before."""

from cli.importing.mapping import tools as mapping
from cli.importing.schema import TOOLS
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import sentence
from cli.importing.values import LeftOut, Row, text_of
from loci.tool.v1 import mcp_service_pb2, tool_service_pb2
from services.common.errors import AlreadyExists, InvalidArgument

_TOOLS = "tools"
_NAME_TAKEN, _SCHEMA_INVALID = "TOOL_NAME_TAKEN", "TOOL_SCHEMA_INVALID"


async def tools(moving: Import) -> None:
    """Fills `moving.tools`."""
    # Base tools are there from the first call on.
    await moving.loci.ask(moving.loci.tools.EnsureBaseTools, tool_service_pb2.EnsureBaseToolsRequest())
    of_servers = await _of_servers(moving)
    async for row in moving.source.rows(TOOLS):
        name = text_of(row["name"])
        moving.tool_names[row["id"]] = name
        if mapping.is_own(row):
            await _by_name(moving, row, "this server has no tool of that name")
        elif mapping.is_of_mcp(row):
            _of_server(moving, row, of_servers)
        else:
            await _custom(moving, row)


async def _custom(moving: Import, row: Row) -> None:
    loci, report = moving.loci, moving.report
    where = {"id": row["id"], "name": text_of(row["name"])}
    request = mapping.tool(row)
    if isinstance(request, LeftOut):
        report.left_out(_TOOLS, request.reason, **where)
        return
    found = await loci.ask(loci.tools.BatchGetTools, tool_service_pb2.BatchGetToolsRequest(tool_ids=[request.tool_id]))
    if found.tools:
        moving.tools[row["id"]] = request.tool_id
        report.found(_TOOLS)
        return
    if moving.dry_run:
        report.took(_TOOLS)
        return
    try:
        try:
            await loci.ask(loci.tools.CreateTool, request)
        except InvalidArgument as error:
            if error.reason != _SCHEMA_INVALID:
                raise
            request.tool.ClearField("json_schema_json")
            request.tool.ClearField("args_json_schema_json")
            await loci.ask(loci.tools.CreateTool, request)
            report.changed(_TOOLS, f"its schema is derived anew: {error.message}", **where)
    except AlreadyExists as error:
        if error.reason != _NAME_TAKEN or not await _by_name(moving, row, ""):
            report.left_out(_TOOLS, sentence(error), **where)
        else:
            report.changed(_TOOLS, "a tool of its name is here already; agents have that one", **where)
    except REFUSALS as error:
        report.left_out(_TOOLS, sentence(error), **where)
    else:
        moving.tools[row["id"]] = request.tool_id
        report.took(_TOOLS)


async def _by_name(moving: Import, row: Row, otherwise: str) -> bool:
    """Whether the tool of the same name stands for it."""
    name = text_of(row["name"])
    asked = tool_service_pb2.BatchGetToolsRequest(names=[name])
    found = (await moving.loci.ask(moving.loci.tools.BatchGetTools, asked)).tools
    if found:
        moving.tools[row["id"]] = found[0].id
        moving.report.found(_TOOLS)
    elif otherwise:
        moving.report.left_out(_TOOLS, otherwise, id=row["id"], name=name)
    return bool(found)


async def _of_servers(moving: Import) -> dict[tuple[str, str], str]:
    """Ids of the tools of MCP servers, by the names of both."""
    loci = moving.loci
    servers = (await loci.ask(loci.servers.ListMcpServers, mcp_service_pb2.ListMcpServersRequest())).servers
    found = {}
    for server in servers:
        asked = mcp_service_pb2.ListMcpToolsRequest(id=server.id)
        for tool in (await loci.ask(loci.servers.ListMcpTools, asked)).tools:
            found[server.name, tool.name] = tool.id
    return found


def _of_server(moving: Import, row: Row, of_servers: dict[tuple[str, str], str]) -> None:
    name, server = text_of(row["name"]), mapping.server_of(row)
    found = of_servers.get((server, name))
    if found is not None:
        moving.tools[row["id"]] = found
        moving.report.found(_TOOLS)
    else:
        reason = f"the MCP server {server!r} does not offer it now; refresh that and attach it again"
        moving.report.left_out(_TOOLS, reason, id=row["id"], name=name)


def known(moving: Import, old_ids: list[str]) -> tuple[list[str], list[str]]:
    """Ids here of an agent's tools, and the names of those that it loses."""
    lost = [moving.tool_names.get(one, one) for one in old_ids if one not in moving.tools]
    return [moving.tools[one] for one in old_ids if one in moving.tools], lost
