"""Tools as REST."""

from hashlib import sha256

import orjson

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
    for name in ("pip_requirements", "npm_requirements"):
        rest[name] = _with_versions(rest[name])
    if not _ships(message):
        # Of an MCP server's tool it is the server's own list entry.
        own = message.tool_type != tool_pb2.TOOL_TYPE_EXTERNAL_MCP
        rest["args_json_schema"] = (own and rest["args_json_schema"]) or {}
        rest["metadata_"] = {**(rest["metadata_"] or {}), "tool_hash": _hash(message)}
    for name in _NOT_IN_TOOLS:
        del rest[name]
    return rest


def catalogued_tool_to_rest(message: tool_pb2.Tool) -> Rest:
    """Returns the reference's Tool, with Loci's own settings where they are set."""
    network = from_json(message.network_json)
    own = ({"network": network} if network else {}) | ({"idempotent": True} if message.idempotent else {})
    return tool_to_rest(message) | own


def _ships(message: tool_pb2.Tool) -> bool:
    return tool_pb2.ToolType.Name(message.tool_type).startswith("TOOL_TYPE_LETTA_")


def _with_versions(requirements: list[Rest] | None) -> list[Rest] | None:
    """Returns the packages, each with its version, null for any."""
    return requirements and [{"version": None, **requirement} for requirement in requirements]


def _hash(message: tool_pb2.Tool) -> str:
    """Returns a text that changes with the program or its schema, not with the order of the schema's members."""
    schema = orjson.dumps(from_json(message.json_schema_json), option=orjson.OPT_SORT_KEYS)
    return sha256(f"{message.name}\n{message.source_code}\n".encode() + schema).hexdigest()


def tool_hit_to_rest(message: tool_pb2.ToolHit) -> Rest:
    """Returns the reference's ToolSearchResult."""
    return {
        "tool": catalogued_tool_to_rest(message.tool),
        "embedded_text": message.embedded_text or None,
        "fts_rank": message.text_rank if message.HasField("text_rank") else None,
        "vector_rank": message.vector_rank if message.HasField("vector_rank") else None,
        "combined_score": message.score,
    }
