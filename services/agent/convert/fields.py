"""Fields that many messages have <-> values."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

import orjson

from services.common.core.storable import parse_storable, storable
from services.common.ids import from_public


def ids(prefix: str, texts: Iterable[str]) -> tuple[UUID, ...]:
    """Returns the ids in a list. Raises InvalidArgument (INVALID_ID)."""
    return tuple(from_public(prefix, text) for text in texts)


def optional_id(request: Any, name: str, prefix: str) -> UUID | None:
    """Returns the id in a field; None where it is not set. Raises InvalidArgument (INVALID_ID)."""
    return from_public(prefix, getattr(request, name)) if request.HasField(name) else None


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
