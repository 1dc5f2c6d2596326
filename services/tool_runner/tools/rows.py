"""Rows of tool_runner.tools as plain values."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from services.common.core.records import record
from services.tool_runner.core.model import Tool, ToolType

_STAMPS = ("id", "created_by_id", "last_updated_by_id", "created_at", "updated_at", "version")
# All but what the statements themselves set, in the order of their parameters.
CHANGING = tuple(field.name for field in fields(Tool) if field.name not in _STAMPS)
TOOL_COLUMNS = ", ".join((*CHANGING, *_STAMPS))


def tool(row: Mapping[str, Any]) -> Tool:
    """Returns the tool of a row with TOOL_COLUMNS."""
    return record(Tool, {**row, "tool_type": ToolType(row["tool_type"])})
