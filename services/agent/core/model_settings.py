"""The part of an agent's `model_settings` that every model has; the rest is the provider's. Pure."""

import math
from collections.abc import Mapping
from typing import Any

HOTTEST = 2.0
# An int32 on the wire.
MOST_TOKENS = 2**31 - 1
_SCHEMA_FORMAT = '{"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}'
RESPONSE_FORMATS = f'{{"type": "text"}}, {{"type": "json_object"}} or {_SCHEMA_FORMAT}'


def problem(settings: Mapping[str, Any]) -> str:
    """Returns what is wrong with a setting, with its name; empty when nothing is. One that is null is not set."""
    temperature, tokens = settings.get("temperature"), settings.get("max_output_tokens")
    if temperature is not None and not (_is_number(temperature) and 0 <= temperature <= HOTTEST):
        return f"temperature must be a number from 0 to {HOTTEST:.0f}, not {_quote(temperature)}"
    if tokens is not None and not (type(tokens) is int and 1 <= tokens <= MOST_TOKENS):
        return f"max_output_tokens must be a whole number from 1 to {MOST_TOKENS}, not {_quote(tokens)}"
    parallel = settings.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        return f"parallel_tool_calls must be true or false, not {_quote(parallel)}"
    return ""


def is_response_format(value: Any) -> bool:
    """Returns whether models can be asked to answer so; null and an empty object ask for nothing."""
    match value:
        case None | {"type": "text" | "json_object"}:
            return True
        case {"type": "json_schema", "json_schema": {"schema": dict()}}:
            return True
        case dict():
            return not value
    return False


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _quote(value: Any) -> str:
    return repr(value)[:80]
