"""What agents read of servers by `list_mcp_resources` and `read_mcp_resource`: of those whose tools they have."""

import asyncio
import json
from typing import Any

from services.tool_runner.core.ports import Work
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.protocol.results import value_of_contents
from services.tool_runner.mcp_servers.model import Server
from services.tool_runner.mcp_servers.resources import McpResources
from services.tool_runner.mcp_servers.service import McpServerService

JsonObject = dict[str, Any]
# Of servers that are asked together.
_AT_ONCE = 8


class ResourceTools:
    """Returns what becomes of a call, as a JSON value. Raises McpProblem, whose text is for the model."""

    def __init__(self, registry: McpServerService, resources: McpResources) -> None:
        self._registry = registry
        self._resources = resources
        self.by_name = {"list_mcp_resources": self.list_resources, "read_mcp_resource": self.read_resource}

    async def list_resources(self, work: Work) -> Any:
        """Returns resources and templates with their servers' names, and the problems of servers that gave none."""
        servers = await self._servers(work)
        free = asyncio.Semaphore(_AT_ONCE)
        listed = await asyncio.gather(*(self._of_server(work, server, free) for server in servers))
        names = ("resources", "resource_templates", "problems")
        found = {name: [entry for one in listed for entry in one.get(name, ())] for name in names}
        if not found["problems"]:
            del found["problems"]
        return found

    async def read_resource(self, work: Work) -> Any:
        """Returns the text of a resource; with pictures, a list as tools return them."""
        (server,) = await self._servers(work)
        contents = await self._resources.read(work.organization_id, server.id, work.arguments["uri"])
        return value_of_contents(json.loads(contents))

    async def _servers(self, work: Work) -> list[Server]:
        """Returns the one that is named, or all that the agent has tools of."""
        attached = await self._registry.of_tools(work.organization_id, work.call.agent_tool_ids)
        if not attached:
            raise McpProblem(Kind.FAILED, "no tool of an MCP server is attached, so there are no resources to read")
        name = work.arguments.get("server")
        if name is None:
            return attached
        chosen = [server for server in attached if server.name == name]
        if not chosen:
            names = ", ".join(server.name for server in attached)
            raise McpProblem(Kind.FAILED, f"no MCP server of that name is attached; there are: {names}")
        return chosen

    async def _of_server(self, work: Work, server: Server, free: asyncio.Semaphore) -> JsonObject:
        try:
            async with free:
                resources, templates = await self._resources.resources(work.organization_id, server.id)
        except McpProblem as problem:
            return {"problems": [{"server": server.name, "problem": problem.message}]}
        return {"resources": _with_name(server, resources), "resource_templates": _with_name(server, templates)}


def _with_name(server: Server, text: str) -> list[JsonObject]:
    return [{"server": server.name} | entry for entry in json.loads(text) if isinstance(entry, dict)]
