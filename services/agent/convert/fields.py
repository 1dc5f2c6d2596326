"""Fields that many messages have <-> values."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from services.common.core.storable import parse_storable, storable


def optional_text(request: Any, name: str) -> str | None:
    """Returns the text in a field as it can be compared with what is stored; None where it is not set."""
    return storable(getattr(request, name)) if request.HasField(name) else None


def json_object(name: str, text: str, refuse: Callable[[str, str], Exception]) -> Mapping[str, Any]:
    """Returns the JSON object in a text; an empty text is an empty one. Raises what `refuse` makes."""
    try:
        value = parse_storable(text or "{}")
    except ValueError as error:
        raise refuse(name, f"must be a JSON object; {error}") from None
    if not isinstance(value, dict):
        raise refuse(name, f"must be a JSON object, not a {type(value).__name__}")
    return value


def json_text(value: Any) -> str:
    """Returns a value for a `*_json` field; what is empty is an empty text."""
    return orjson.dumps(value).decode() if value else ""
