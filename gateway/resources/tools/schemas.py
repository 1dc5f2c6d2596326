"""Tools, their calls, sandboxes and MCP servers."""

from gateway.openapi.schemas import (
    ANY,
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    array,
    by_name,
    choice,
    maybe,
    names_of,
    of,
    record,
)
from loci.tool.v1 import environment_service_pb2, execution_service_pb2, mcp_pb2, tool_pb2

_LEFT = (
    "created_at",
    "updated_at",
    "version",
    "idempotent",
    "network",
    "takes_agent_state",
    "mcp_server_id",
    "metadata",
)
_TOLD = {"metadata_": OBJECT, "source_code": maybe(TEXT), "json_schema": maybe(OBJECT)}
TOOL = of("Tool", tool_pb2.Tool.DESCRIPTOR, leave=_LEFT, **_TOLD)
CATALOGUED = of("CataloguedTool", tool_pb2.Tool.DESCRIPTOR, leave=_LEFT, **_TOLD, network=OBJECT, idempotent=FLAG)
TOOL_HIT = record(
    "ToolSearchResult",
    {
        "tool": CATALOGUED,
        "embedded_text": maybe(TEXT),
        "fts_rank": maybe(WHOLE),
        "vector_rank": maybe(WHOLE),
        "combined_score": NUMBER,
    },
)
WRITTEN_TOOL = record("GenerateToolOutput", {"tool": TOOL, "sample_args": OBJECT, "response": TEXT})
VARIABLES = array(record("MaskedVariable", {"key": TEXT, "value": TEXT}))


def execution_result(agent_state: dict[str, object]) -> dict[str, object]:
    """The reference's ToolExecutionResult."""
    return record(
        "ToolExecutionResult",
        {
            "status": choice("success", "error"),
            "func_return": ANY,
            "agent_state": maybe(agent_state),
            "stdout": array(TEXT),
            "stderr": array(TEXT),
            "sandbox_config_fingerprint": maybe(TEXT),
        },
    )


RECEIPT = of("Receipt", execution_service_pb2.Receipt.DESCRIPTOR)
_NOT_LISTED = ("result", "tool_return", "stdout", "stderr", "block_edits", "files")
EXECUTIONS = record(
    "Executions",
    {
        "executions": array(of("ListedReceipt", execution_service_pb2.Receipt.DESCRIPTOR, leave=_NOT_LISTED)),
        "next_page_token": maybe(TEXT),
    },
)
EXECUTION_FILE = of("ExecutionFile", execution_service_pb2.ExecutionFile.DESCRIPTOR)
EXECUTION_FILES = record("ExecutionFiles", {"files": array(EXECUTION_FILE), "next_page_token": maybe(TEXT)})

_HIDDEN = ("owner", "masked_value")
_VARIABLE = {"value": TEXT, "value_enc": maybe(TEXT), "description": maybe(TEXT)}
SECRET = of(
    "AgentEnvironmentVariable", environment_service_pb2.Variable.DESCRIPTOR, leave=_HIDDEN, **_VARIABLE, agent_id=TEXT
)
SANDBOX_VARIABLE = of(
    "SandboxEnvironmentVariable",
    environment_service_pb2.Variable.DESCRIPTOR,
    leave=_HIDDEN,
    **_VARIABLE,
    sandbox_config_id=TEXT,
    organization_id=TEXT,
)
SANDBOX_CONFIG = of(
    "SandboxConfigState", environment_service_pb2.SandboxConfig.DESCRIPTOR, config=OBJECT, organization_id=TEXT
)

_PROBLEMS = array(record("McpToolProblem", {"name": TEXT, "problem": TEXT}))
_HTTP = {
    "server_url": TEXT,
    "auth_header": maybe(TEXT),
    "auth_token": maybe(TEXT),
    "custom_headers": maybe(by_name(TEXT)),
}
_STDIO = {"command": TEXT, "args": array(TEXT), "env": maybe(by_name(TEXT)), "network": OBJECT}
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
    optional=_EITHER,
)
NAMED_SERVER = record(
    "NamedMcpServerConfig",
    {
        "server_name": TEXT,
        "type": choice("streamable_http", "sse", "stdio"),
        **_EITHER,
        "stdio_config": OBJECT,
    },
    optional=(*_EITHER, "stdio_config"),
)
MCP_CHANGES = record(
    "McpChanges",
    {**dict.fromkeys(("added", "updated", "deleted"), array(TEXT)), "tool_problems": _PROBLEMS},
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
)
MCP_TESTED = record("McpTested", {"status": choice("success"), "tools": array(MCP_TOOL)})
