"""JSON that clients attach to a tool: checked, and kept as the text it came in. Pure."""

import json

from services.common.core.refusals import Refused


def json_object(text: str, name: str) -> str:
    """Returns the text, if it is a JSON object; raises Refused (TOOL_INVALID)."""
    return _check(text, name, dict, "object")


def json_array(text: str, name: str) -> str:
    """Returns the text, if it is a JSON array or ""; raises Refused (TOOL_INVALID)."""
    return _check(text, name, list, "array") if text and text != "null" else ""


def _check(text: str, name: str, kind: type, called: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("TOOL_INVALID", f"{name} is not valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, kind):
        raise Refused("TOOL_INVALID", f"{name} must be a JSON {called}")
    if "\x00" in text:
        raise Refused("TOOL_INVALID", f"{name} may not hold the character NUL")
    return text
