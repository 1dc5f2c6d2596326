"""Tools. Where this server has a tool of the same name, agents get that one."""

from cli.importing.mapping import tools as mapping
from cli.importing.schema import TOOLS
from cli.importing.steps.common import REFUSALS, Import
from cli.importing.target import describe
from cli.importing.values import Row, Skip, as_text, public_id
from loci.tool.v1 import mcp_service_pb2, tool_service_pb2
from services.common.errors import AlreadyExists, InvalidArgument

_TOOLS = TOOLS.name
_NAME_TAKEN, _SCHEMA_INVALID = "TOOL_NAME_TAKEN", "TOOL_SCHEMA_INVALID"


async def tools(job: Import) -> None:
    """Fills `job.tools`."""
    # Base tools are there from the first call on.
    await job.loci.call(job.loci.tools.EnsureBaseTools, tool_service_pb2.EnsureBaseToolsRequest())
    mcp_tool_ids = await _mcp_tool_ids(job)
    async for row in job.source.rows(TOOLS):
        name = job.tool_names[row["id"]] = as_text(row["name"])
        if mapping.is_builtin(row):
            if not await _use_namesake(job, row):
                job.report.leave(_TOOLS, row["id"], "this server has no tool of that name", name)
        elif mapping.is_mcp_tool(row):
            _use_mcp_tool(job, row, mcp_tool_ids)
        else:
            await _custom(job, row)


async def _custom(job: Import, row: Row) -> None:
    loci, report, old_id, name = job.loci, job.report, row["id"], as_text(row["name"])
    mapped = mapping.tool(row)
    if isinstance(mapped, Skip):
        report.leave(_TOOLS, old_id, mapped.reason, name)
        return
    request, changes = mapped
    query = tool_service_pb2.BatchGetToolsRequest(tool_ids=[request.tool_id])
    if (await loci.call(loci.tools.BatchGetTools, query)).tools:
        job.tools[old_id] = request.tool_id
        report.keep(_TOOLS, old_id)
        return
    try:
        if not job.dry_run:
            changes += await _create(job, request)
    except AlreadyExists as error:
        if error.reason != _NAME_TAKEN or not await _use_namesake(job, row):
            report.leave(_TOOLS, old_id, describe(error), name)
    except REFUSALS as error:
        report.leave(_TOOLS, old_id, describe(error), name)
    else:
        job.tools[old_id] = request.tool_id
        report.take(_TOOLS, old_id)
        for change in changes:
            report.change(_TOOLS, old_id, change, name)


async def _create(job: Import, request: tool_service_pb2.CreateToolRequest) -> list[str]:
    """Creates a tool; returns the changes it had to take, and what its calls will lack. Raises LociError."""
    create = job.loci.tools.CreateTool
    try:
        return [*(await job.loci.call(create, request)).warnings]
    except InvalidArgument as error:
        if error.reason != _SCHEMA_INVALID:
            raise
        request.tool.ClearField("json_schema_json")
        request.tool.ClearField("args_json_schema_json")
        created = await job.loci.call(create, request)
        return [f"its schema is derived anew: {error.message}", *created.warnings]


async def _use_namesake(job: Import, row: Row) -> bool:
    """Uses the tool of the same name instead; returns whether there is one."""
    name = as_text(row["name"])
    query = tool_service_pb2.BatchGetToolsRequest(names=[name])
    namesakes = (await job.loci.call(job.loci.tools.BatchGetTools, query)).tools
    if namesakes:
        _use(job, row, namesakes[0].id)
    return bool(namesakes)


async def _mcp_tool_ids(job: Import) -> dict[tuple[str, str], str]:
    """Returns the ids of MCP tools, by the names of server and tool."""
    loci, ids = job.loci, dict[tuple[str, str], str]()
    servers = (await loci.call(loci.servers.ListMcpServers, mcp_service_pb2.ListMcpServersRequest())).servers
    for server in servers:
        query = mcp_service_pb2.ListMcpToolsRequest(id=server.id)
        ids |= {(server.name, one.name): one.id for one in (await loci.call(loci.servers.ListMcpTools, query)).tools}
    return ids


def _use_mcp_tool(job: Import, row: Row, mcp_tool_ids: dict[tuple[str, str], str]) -> None:
    name, server = as_text(row["name"]), mapping.server_of(row)
    tool_id = mcp_tool_ids.get((server, name))
    if tool_id is not None:
        _use(job, row, tool_id)
    else:
        reason = f"the MCP server {server!r} does not offer it now; refresh that and attach it again"
        job.report.leave(_TOOLS, row["id"], reason, name)


def _use(job: Import, row: Row, tool_id: str) -> None:
    """Gives agents a tool that is here already."""
    job.tools[row["id"]] = tool_id
    if tool_id == public_id("tool", row["id"]):
        job.report.keep(_TOOLS, row["id"])
    else:
        change = "a tool of its name is here already; agents have that one, under its id"
        job.report.change(_TOOLS, row["id"], change, as_text(row["name"]))


def map_tool_ids(job: Import, old_ids: list[str]) -> tuple[list[str], list[str]]:
    """Returns the ids here of an agent's tools, and the names of those that it loses."""
    lost = [job.tool_names.get(one, one) for one in old_ids if one not in job.tools]
    return [job.tools[one] for one in old_ids if one in job.tools], lost
