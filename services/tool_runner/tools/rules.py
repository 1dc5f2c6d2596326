"""The settings of a tool that its clients may change. Pure.

What is the tenant's own may be changed whole. A tool that ships with Loci, or that an MCP server offers, is somebody
else's: its source and schema come from there, and would be overwritten when they come again. How a server's tool is
described may be said better: what a tenant wrote stays when the server is read again.
"""

import json
from typing import Any

from services.tool_runner.core.model import Tool, ToolChanges, ToolType

OWN = frozenset({ToolType.CUSTOM, ToolType.EXTERNAL_LANGCHAIN, ToolType.EXTERNAL_COMPOSIO})
_OF_ALL = frozenset({"tags", "metadata", "project_id", "return_char_limit", "default_requires_approval"})
_OF_SERVERS = _OF_ALL | {"description", "enable_parallel_execution", "idempotent"}
_SCHEMAS = frozenset({"json_schema", "args_json_schema"})


def is_own(tool: Tool) -> bool:
    """Returns whether the tenant made it, and so may change it whole."""
    return tool.tool_type in OWN


def read_only(tool: Tool, changes: ToolChanges) -> list[str]:
    """Returns the names of changes that the tool's type does not allow. What is sent back as it is, is no change."""
    if is_own(tool):
        return []
    allowed = _OF_SERVERS if tool.tool_type is ToolType.EXTERNAL_MCP else _OF_ALL
    return [name for name, value in changes.items() if name not in allowed and not _is_same(tool, name, value)]


def refusal(tool: Tool, names: list[str]) -> str:
    """Returns the sentence about them."""
    maker = "its MCP server" if tool.tool_type is ToolType.EXTERNAL_MCP else "Loci"
    allowed = _OF_SERVERS if tool.tool_type is ToolType.EXTERNAL_MCP else _OF_ALL
    may = ", ".join(sorted(allowed))
    return f"{tool.name} is a built-in tool that comes from {maker}: {', '.join(names)} cannot be changed; {may} can"


def _is_same(tool: Tool, name: str, value: Any) -> bool:
    present = getattr(tool, name)
    if name in _SCHEMAS and value and present:
        return bool(json.loads(value) == json.loads(present))
    return bool(value == present) or (not value and not present)
