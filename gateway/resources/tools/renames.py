"""A tool that gets another name: rules of agents name tools, and follow.

The catalogue and the agents are of two services, without a transaction that spans them. So calls that wait for approval
wait under both names first; then the tool is renamed, and then all rules are. Whatever ends this in the middle, no call
runs that nobody approved; see decision 85.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.rest.services import Services
from loci.agent.v1 import agent_service_pb2
from loci.tool.v1 import tool_service_pb2
from services.common.errors import LociError


@asynccontextmanager
async def rules_follow(loci: Services, request: tool_service_pb2.UpdateToolRequest) -> AsyncIterator[None]:
    """Has rules follow where the update within gives the tool another name. Raises LociError."""
    new = _name_in(request)
    old = await _present_name(loci, request.tool_id, new) if new else ""
    if old in ("", new):
        yield
        return
    agents = loci.peers.agents
    waits = agent_service_pb2.RenameToolRequest(
        tool_id=request.tool_id, old_name=old, new_name=new, only_approvals=True
    )
    await loci.peers.call(agents.RenameTool, waits)
    try:
        yield
    except LociError:
        back = agent_service_pb2.RenameToolRequest(tool_id=request.tool_id, old_name=new, new_name=old)
        await loci.peers.call(agents.RenameTool, back)
        raise
    follow = agent_service_pb2.RenameToolRequest(tool_id=request.tool_id, old_name=old, new_name=new)
    await loci.peers.call(agents.RenameTool, follow)


async def _present_name(loci: Services, tool_id: str, new: str) -> str:
    """Returns the tool's name; "" where it is gone, or where another tool has the new one: the update says so."""
    request = tool_service_pb2.BatchGetToolsRequest(tool_ids=[tool_id], names=[new])
    tools = (await loci.peers.call(loci.peers.tools.BatchGetTools, request)).tools
    if any(tool.name == new and tool.id != tool_id for tool in tools):
        return ""
    return next((tool.name for tool in tools if tool.id == tool_id), "")


def _name_in(request: tool_service_pb2.UpdateToolRequest) -> str:
    """Returns the name that the request's schema has; "" where it has no schema, or none that is one."""
    try:
        schema = json.loads(request.tool.json_schema_json or "null")
    except (ValueError, RecursionError):
        return ""
    name = schema.get("name") if isinstance(schema, dict) else None
    return name if isinstance(name, str) else ""
