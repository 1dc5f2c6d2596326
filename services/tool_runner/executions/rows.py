"""Rows of tool_runner.receipts and tool_runner.files as plain values."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from services.tool_runner.core.model import KeptFile, Outcome, Receipt, State

_LISTED = (
    "call_key",
    "tool_id",
    "tool_version",
    "tool_name",
    "arguments_hash",
    "owner_id",
    "cancel_requested",
    "agent_id",
    "run_id",
    "step_id",
    "limits",
    "settings",
    "sandbox",
    "image",
    "output_hash",
    "reserved_at",
    "started_at",
    "ended_at",
)


_RESULT = ("result", "tool_return", "stdout", "stderr")


_PAIRS = ("output_order", "block_edits")


# Without what was returned and printed.
LISTED_COLUMNS = ", ".join(("state", "outcome", *_LISTED))


RECEIPT_COLUMNS = ", ".join(("state", "outcome", *_LISTED, *_RESULT, *_PAIRS))


FILE_COLUMNS = "id, name, size, sha256, call_key, agent_id, created_at"


# Of the receipt `r`.
FILES_OF_RECEIPT = f"""(
    SELECT jsonb_agg(to_jsonb(kept) ORDER BY kept.id) FROM (
        SELECT {FILE_COLUMNS} FROM tool_runner.files f
        WHERE f.organization_id = r.organization_id AND f.call_key = r.call_key) AS kept)"""


def receipt_summary(row: Mapping[str, Any]) -> Receipt:
    """Returns the receipt of a row with LISTED_COLUMNS."""
    return _receipt(row, {})


def receipt(row: Mapping[str, Any], *, owner_alive: bool = True) -> Receipt:
    """Returns the receipt of a row with RECEIPT_COLUMNS and `files`."""
    values = {name: row[name] for name in _RESULT}
    values |= {name: tuple(map(tuple, json.loads(row[name] or "[]"))) for name in _PAIRS}
    values["files"] = tuple(map(_file_from_json, row["files"] or ()))
    return _receipt(row, values | {"owner_alive": owner_alive})


def file(row: Mapping[str, Any]) -> KeptFile:
    """Returns the file of a row with FILE_COLUMNS."""
    return KeptFile(**{name: row[name] for name in FILE_COLUMNS.split(", ")})


def _receipt(row: Mapping[str, Any], values: Mapping[str, Any]) -> Receipt:
    plain = {name: row[name] for name in _LISTED}
    return Receipt(state=State(row["state"]), outcome=Outcome(row["outcome"]), **plain, **values)


def _file_from_json(values: Mapping[str, Any]) -> KeptFile:
    ids = {name: UUID(values[name]) if values[name] else None for name in ("id", "agent_id")}
    return KeptFile(**{**values, **ids, "created_at": datetime.fromisoformat(values["created_at"])})
