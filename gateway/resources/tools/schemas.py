"""Tools."""

from gateway.openapi.schemas import ANY, FLAG, NUMBER, OBJECT, TEXT, WHOLE, array, maybe, of, record
from loci.tool.v1 import tool_pb2

_LEFT = (
    "created_at",
    "updated_at",
    "version",
    "idempotent",
    "network",
    "takes_agent_state",
    "mcp_server_id",
)
# What may be unset in a draft is there in a tool.
_FIELDS = {
    "description": TEXT,
    "source_code": maybe(TEXT),
    "args_json_schema": ANY,
    "return_char_limit": WHOLE,
    "default_requires_approval": maybe(FLAG),
    "enable_parallel_execution": FLAG,
}
TOOL = of("Tool", tool_pb2.Tool.DESCRIPTOR, leave=_LEFT, **_FIELDS)
CATALOGUED = of(
    "CataloguedTool",
    tool_pb2.Tool.DESCRIPTOR,
    leave=_LEFT,
    optional=("network", "idempotent", "warnings"),
    **_FIELDS,
    network=OBJECT,
    idempotent=FLAG,
    warnings=array(TEXT),
)
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
