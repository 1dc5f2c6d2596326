"""Parts of messages that several share: JSON, times."""

from datetime import UTC, datetime
from typing import Any

import orjson

from services.common.errors import InvalidArgument
from services.memory.core.blocks import without_nul
from services.memory.model import (
    JsonObject,
    Refused,
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
