"""Rows of tool_runner.tools, tool_runner.receipts and tool_runner.files as plain values."""

from collections.abc import Mapping
from typing import Any

from services.tool_runner.core.model import Tool, ToolType

# What a client may change, in the order of the statements' parameters.
CHANGING = (
    "name",
    "description",
    "tool_type",
    "source_type",
    "source_code",
    "json_schema",
    "args_json_schema",
    "tags",
    "return_char_limit",
    "default_requires_approval",
    "enable_parallel_execution",
    "idempotent",
    "metadata",
    "pip_requirements",
    "npm_requirements",
    "project_id",
    "network",
    "takes_agent_state",
    "mcp_server_id",
    "mcp_tool_name",
)
_FIXED = ("id", "created_by_id", "last_updated_by_id", "created_at", "updated_at", "version")
TOOL_COLUMNS = ", ".join((*CHANGING, *_FIXED))


def tool(row: Mapping[str, Any]) -> Tool:
    """Returns the tool of a row with TOOL_COLUMNS."""
    values = {name: row[name] for name in (*CHANGING, *_FIXED)}
    values["tool_type"] = ToolType(values["tool_type"])
    values["tags"] = tuple(values["tags"])
    return Tool(**values)
