"""Parts of messages that several share: pages, JSON, times."""

from datetime import UTC, datetime
from typing import Any

import orjson

from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.common.paging import Page
from services.memory.core.errors import Refused
from services.memory.core.paging import checked_size
from services.memory.core.storable import JsonObject, without_nul


def page(request: Any, prefix: str, default: int) -> Page:
    """The page that a list request asks for. Raises InvalidArgument (INVALID_ID), Refused."""
    return Page(
        size=checked_size(request.page_size, default),
        token=request.page_token,
        after=from_public(prefix, request.after) if request.HasField("after") else None,
        before=from_public(prefix, request.before) if request.HasField("before") else None,
        ascending=not request.descending,
    )


def json_object(text: str, reason: str) -> JsonObject:
    if not text:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(reason, f"metadata is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(reason, "metadata must be a JSON object")
    return value


def json_text(value: JsonObject) -> str:
    return orjson.dumps(value).decode()


def text(request: Any, name: str) -> str | None:
    return without_nul(getattr(request, name)) if request.HasField(name) else None


def moment(message: Any, name: str) -> datetime | None:
    if not message.HasField(name):
        return None
    try:
        moment: datetime = getattr(message, name).ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{name} is not a time between the years 1 and 9999", reason="TIME_INVALID") from None
    return moment
