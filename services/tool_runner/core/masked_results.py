"""A result without the values of secrets. Pure."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from services.tool_runner.core.job import Result, ToolError

Masked = Callable[[str], str]


def mask_result(result: Result, masked: Masked) -> Result:
    """Returns all that is told of it; files stay as they are. What a call printed is masked apart, see `output.py`."""
    return replace(
        result,
        result=mask_json(result.result, masked) if result.result is not None else None,
        error=_error(result.error, masked) if result.error else None,
        block_edits=tuple((masked(label), masked(value)) for label, value in result.block_edits),
    )


def mask_json(text: str, masked: Masked) -> str:
    """Returns JSON with its texts masked, escaped ones too; byte for byte the same where nothing is masked."""
    try:
        value = json.loads(text)
        changed = _mask_value(value, masked)
    except RecursionError:
        return json.dumps(masked(text))
    return text if changed == value else json.dumps(changed, ensure_ascii=False)


def _mask_value(value: Any, masked: Masked) -> Any:
    match value:
        case str():
            return masked(value)
        case dict():
            return {masked(name): _mask_value(part, masked) for name, part in value.items()}
        case list():
            return [_mask_value(part, masked) for part in value]
    return value


def _error(error: ToolError, masked: Masked) -> ToolError:
    return ToolError(masked(error.type), masked(error.message), masked(error.traceback))
