"""Tools as REST."""

from gateway.rest.convert import Rest, from_json, to_rest
from loci.tool.v1 import tool_pb2

# The reference's fields that Loci has no use for are there and null.
_NOT_IN_TOOLS = frozenset(
    ("created_at", "updated_at", "version", "idempotent", "network", "takes_agent_state", "mcp_server_id")
)


def tool_to_rest(message: tool_pb2.Tool) -> Rest:
    """Returns the reference's Tool: 18 fields."""
    rest = to_rest(message)
    rest["source_code"] = rest["source_code"] or None
    for name in _NOT_IN_TOOLS:
        del rest[name]
    return rest


def catalogued_tool_to_rest(message: tool_pb2.Tool) -> Rest:
    """Returns the reference's Tool, with what Loci's own settings are."""
    return tool_to_rest(message) | {"network": from_json(message.network_json) or {}, "idempotent": message.idempotent}


def tool_hit_to_rest(message: tool_pb2.ToolHit) -> Rest:
    """Returns the reference's ToolSearchResult."""
    return {
        "tool": catalogued_tool_to_rest(message.tool),
        "embedded_text": message.embedded_text or None,
        "fts_rank": message.text_rank if message.HasField("text_rank") else None,
        "vector_rank": message.vector_rank if message.HasField("vector_rank") else None,
        "combined_score": message.score,
    }
