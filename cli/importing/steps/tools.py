"""Tools. Where this server has a tool of the same name, agents get that one."""

from cli.importing.mapping import tools as mapping
from cli.importing.schema import TOOLS
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text
from loci.tool.v1 import mcp_service_pb2, tool_service_pb2
from services.common.errors import AlreadyExists, InvalidArgument

_TOOLS = "tools"
_NAME_TAKEN, _SCHEMA_INVALID = "TOOL_NAME_TAKEN", "TOOL_SCHEMA_INVALID"


async def tools(job: Import) -> None:
    """Fills `job.tools`."""
    # Base tools are there from the first call on.
    await job.loci.call(job.loci.tools.EnsureBaseTools, tool_service_pb2.EnsureBaseToolsRequest())
    mcp_tool_ids = await _mcp_tool_ids(job)
    async for row in job.source.rows(TOOLS):
        name = as_text(row["name"])
        job.tool_names[row["id"]] = name
        if mapping.is_builtin(row):
            await _use_namesake(job, row, "this server has no tool of that name")
        elif mapping.is_mcp_tool(row):
            _use_mcp_tool(job, row, mcp_tool_ids)
        else:
            await _custom(job, row)


async def _custom(job: Import, row: Row) -> None:
    loci, report = job.loci, job.report
    where = {"id": row["id"], "name": as_text(row["name"])}
    request = mapping.tool(row)
    if isinstance(request, Skip):
        report.skip(_TOOLS, request.reason, **where)
        return
    found = await loci.call(loci.tools.BatchGetTools, tool_service_pb2.BatchGetToolsRequest(tool_ids=[request.tool_id]))
    if found.tools:
        job.tools[row["id"]] = request.tool_id
        report.count_present(_TOOLS)
        return
    if job.dry_run:
        report.count_taken(_TOOLS)
        return
    try:
        try:
            await loci.call(loci.tools.CreateTool, request)
        except InvalidArgument as error:
            if error.reason != _SCHEMA_INVALID:
                raise
            request.tool.ClearField("json_schema_json")
            request.tool.ClearField("args_json_schema_json")
            await loci.call(loci.tools.CreateTool, request)
            report.note_change(_TOOLS, f"its schema is derived anew: {error.message}", **where)
    except AlreadyExists as error:
        if error.reason != _NAME_TAKEN or not await _use_namesake(job, row, ""):
            report.skip(_TOOLS, describe(error), **where)
        else:
            report.note_change(_TOOLS, "a tool of its name is here already; agents have that one", **where)
    except REFUSALS as error:
        report.skip(_TOOLS, describe(error), **where)
    else:
        job.tools[row["id"]] = request.tool_id
        report.count_taken(_TOOLS)


async def _use_namesake(job: Import, row: Row, otherwise: str) -> bool:
    """Uses the tool of the same name instead; returns whether there is one."""
    name = as_text(row["name"])
    asked = tool_service_pb2.BatchGetToolsRequest(names=[name])
    found = (await job.loci.call(job.loci.tools.BatchGetTools, asked)).tools
    if found:
        job.tools[row["id"]] = found[0].id
        job.report.count_present(_TOOLS)
    elif otherwise:
        job.report.skip(_TOOLS, otherwise, id=row["id"], name=name)
    return bool(found)


async def _mcp_tool_ids(job: Import) -> dict[tuple[str, str], str]:
    """Returns the ids of MCP tools, by the names of server and tool."""
    loci = job.loci
    servers = (await loci.call(loci.servers.ListMcpServers, mcp_service_pb2.ListMcpServersRequest())).servers
    found = {}
    for server in servers:
        asked = mcp_service_pb2.ListMcpToolsRequest(id=server.id)
        for tool in (await loci.call(loci.servers.ListMcpTools, asked)).tools:
            found[server.name, tool.name] = tool.id
    return found


def _use_mcp_tool(job: Import, row: Row, mcp_tool_ids: dict[tuple[str, str], str]) -> None:
    name, server = as_text(row["name"]), mapping.server_of(row)
    found = mcp_tool_ids.get((server, name))
    if found is not None:
        job.tools[row["id"]] = found
        job.report.count_present(_TOOLS)
    else:
        reason = f"the MCP server {server!r} does not offer it now; refresh that and attach it again"
        job.report.skip(_TOOLS, reason, id=row["id"], name=name)


def map_tool_ids(job: Import, old_ids: list[str]) -> tuple[list[str], list[str]]:
    """Returns the ids here of an agent's tools, and the names of those that it loses."""
    lost = [job.tool_names.get(one, one) for one in old_ids if one not in job.tools]
    return [job.tools[one] for one in old_ids if one in job.tools], lost
