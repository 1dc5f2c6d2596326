"""What servicers share: ids, JSON and times of messages."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public
from services.common.refusals import Refused
from services.memory.core.storable import JsonObject, without_nul


def agent_id(text: str) -> UUID:
    """Of `agent-<uuid>`."""
    return from_public("agent", text)


def block_id(text: str) -> UUID:
    """Of `block-<uuid>`."""
    return from_public("block", text)


def archive_id(text: str) -> UUID:
    """Of `archive-<uuid>`."""
    return from_public("archive", text)


def passage_id(text: str) -> UUID:
    """Of `passage-<uuid>`."""
    return from_public("passage", text)


def identity_id(text: str) -> UUID:
    """Of `identity-<uuid>`."""
    return from_public("identity", text)


def identity_ids(texts: Iterable[str]) -> tuple[UUID, ...]:
    """Of `identity-<uuid>` each."""
    return tuple(map(identity_id, texts))


def conversation_id(text: str) -> UUID | None:
    """Of `conv-<uuid>`; None where none is given."""
    return needed_conversation_id(text) if text else None


def needed_conversation_id(text: str) -> UUID:
    """Of `conv-<uuid>`."""
    return from_public("conv", text)


def run_id(text: str) -> UUID | None:
    return from_public("run", text) if text else None


def optional_id(prefix: str, value: UUID | None) -> str:
    return "" if value is None else to_public(prefix, value)


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
