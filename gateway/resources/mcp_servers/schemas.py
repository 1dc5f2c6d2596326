"""MCP servers."""

from gateway.openapi.schemas import ANY, FLAG, MOMENT, OBJECT, TEXT, array, by_name, choice, maybe, names_of, record
from loci.tool.v1 import mcp_pb2

_PROBLEMS = array(record("McpToolProblem", {"name": TEXT, "problem": TEXT}))
_HTTP = {
    "server_url": TEXT,
    "auth_header": maybe(TEXT),
    "auth_token": maybe(TEXT),
    "custom_headers": maybe(by_name(TEXT)),
}
_STDIO = {
    "command": TEXT,
    "args": array(TEXT),
    "env": maybe(by_name(TEXT)),
    "network": OBJECT,
    "paths": array(TEXT),
}
_EITHER = _HTTP | _STDIO
MCP_SERVER = record(
    "McpServer",
    {
        "id": TEXT,
        "server_name": TEXT,
        "mcp_server_type": choice("streamable_http", "sse", "stdio"),
        **_EITHER,
        "status": names_of(mcp_pb2.McpStatus.DESCRIPTOR, null=True),
        "problem": maybe(TEXT),
        "tool_problems": _PROBLEMS,
        "synced_at": maybe(MOMENT),
        "metadata_": OBJECT,
    },
    optional=(*_EITHER, "status", "problem", "tool_problems", "synced_at", "metadata_"),
)
NAMED_SERVER = record(
    "NamedMcpServerConfig",
    {
        "server_name": TEXT,
        "type": choice("streamable_http", "sse", "stdio"),
        **_EITHER,
    },
    optional=_EITHER,
)
MCP_CHANGES = record(
    "McpChanges",
    {**dict.fromkeys(("added", "updated", "deleted"), array(TEXT)), "tool_problems": _PROBLEMS},
    optional=("tool_problems",),
)
MCP_TOOL = record(
    "McpTool",
    {
        "name": TEXT,
        "title": maybe(TEXT),
        "description": TEXT,
        "inputSchema": OBJECT,
        **dict.fromkeys(("outputSchema", "annotations", "_meta"), maybe(OBJECT)),
        "health": record("McpToolHealth", {"status": TEXT, "reasons": array(TEXT)}),
    },
    optional=("health",),
)
MCP_RESOURCES = record("McpResources", {"resources": array(OBJECT), "resource_templates": array(OBJECT)})
MCP_TESTED = record("McpTested", {"status": choice("success"), "tools": array(MCP_TOOL)})
MCP_RESULT = record("McpToolResult", {"result": ANY, "success": FLAG})
