"""`read_mcp_resource`: see `mcp_servers/resource_tools.py`."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="read_mcp_resource",
    tool_type=ToolType.LETTA_BUILTIN,
    parallel=True,
    description="""\
Read a resource of an MCP server whose tools you have. list_mcp_resources lists them.

Examples:
    read_mcp_resource(server="tickets", uri="ticket://4711")""",
    properties={
        "server": {"type": "string", "description": "The name of the MCP server."},
        "uri": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The resource's uri."},
    },
    required=("server", "uri"),
)
