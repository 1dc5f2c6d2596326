"""`list_mcp_resources`: see `mcp_servers/resource_tools.py`."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="list_mcp_resources",
    tool_type=ToolType.LETTA_BUILTIN,
    parallel=True,
    description="""\
List what the MCP servers whose tools you have offer to be read: documents, records, files. Answers JSON with
`resources`, each with its server and uri, and `resource_templates`, whose uri you complete yourself. Read one with
read_mcp_resource.

Examples:
    list_mcp_resources()
    list_mcp_resources(server="tickets")""",
    properties={"server": {"type": "string", "description": "Only those of the MCP server of this name."}},
    required=(),
)
