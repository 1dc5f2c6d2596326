"""Rows of tool_runner.tools and tool_runner.receipts as plain values."""

from collections.abc import Mapping
from typing import Any

from services.tool_runner.model import Outcome, Receipt, State, Tool, ToolType

# What a client may change, in the order of the statements' parameters.
CHANGING = (
    "name",
    "description",
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
)
_FIXED = ("id", "tool_type", "created_by_id", "last_updated_by_id", "created_at", "updated_at", "version")
TOOL_COLUMNS = ", ".join((*CHANGING, *_FIXED))

_RECEIPT = (
    "call_key",
    "tool_id",
    "tool_version",
    "arguments_hash",
    "owner_id",
    "cancel_requested",
    "result",
    "tool_return",
    "stdout",
    "stderr",
    "sandbox",
    "image",
    "output_hash",
    "started_at",
    "ended_at",
)
RECEIPT_COLUMNS = ", ".join(("state", "outcome", *_RECEIPT))


def tool(row: Mapping[str, Any]) -> Tool:
    """From a row with TOOL_COLUMNS."""
    values = {name: row[name] for name in (*CHANGING, *_FIXED)}
    values["tool_type"] = ToolType(values["tool_type"])
    values["tags"] = tuple(values["tags"])
    return Tool(**values)


def receipt(row: Mapping[str, Any], *, owner_alive: bool = True) -> Receipt:
    """From a row with RECEIPT_COLUMNS."""
    values = {name: row[name] for name in _RECEIPT}
    return Receipt(state=State(row["state"]), outcome=Outcome(row["outcome"]), owner_alive=owner_alive, **values)
