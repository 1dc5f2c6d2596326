"""The parts of messages that servicers share: ids, settings, texts and times."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import orjson

from services.common.codec import Codec
from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.common.errors import InvalidArgument
from services.common.ids import from_public, optional_id
from services.common.timestamps import moment_in
from services.memory.core.rules import JsonObject

D = TypeVar("D")


def agent_id(text: str) -> UUID:
    """Returns the UUID of `agent-<uuid>`."""
    return from_public("agent", text)


def block_id(text: str) -> UUID:
    """Returns the UUID of `block-<uuid>`."""
    return from_public("block", text)


def archive_id(text: str) -> UUID:
    """Returns the UUID of `archive-<uuid>`."""
    return from_public("archive", text)


def passage_id(text: str) -> UUID:
    """Returns the UUID of `passage-<uuid>`."""
    return from_public("passage", text)


def identity_id(text: str) -> UUID:
    """Returns the UUID of `identity-<uuid>`."""
    return from_public("identity", text)


def identity_ids(texts: Iterable[str]) -> tuple[UUID, ...]:
    """Returns the UUIDs of `identity-<uuid>`."""
    return tuple(map(identity_id, texts))


def conversation_id(text: str) -> UUID | None:
    """Returns the UUID of `conv-<uuid>`; None where none is given."""
    return needed_conversation_id(text) if text else None


def needed_conversation_id(text: str) -> UUID:
    """Returns the UUID of `conv-<uuid>`."""
    return from_public("conv", text)


def run_id(text: str) -> UUID | None:
    """Returns the UUID of `run-<uuid>`; None where none is given."""
    return optional_id("run", text)


def settings(of: type[D], message: Any, reason: str, *, leave: Iterable[str] = ()) -> Codec[D, Any]:
    """Returns the codec of what a client sets; what is wrong with it is refused for this reason."""
    return Codec(
        of,
        message,
        leave=leave,
        refuse=lambda name, problem: Refused(reason, f"{name} {problem}"),
        parsers={"metadata": partial(_json_object, reason=reason)},
    )


def changes(codec: Codec[Any, Any], message: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Returns new values of the fields that a mask names. Raises InvalidArgument (UPDATE_MASK_INVALID), Refused."""
    names = codec.mask(paths)
    values = codec.check(codec.decode(message), names)
    return {name: getattr(values, name) for name in names}


def _json_object(text: str, reason: str) -> JsonObject:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        raise Refused(reason, f"metadata is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(reason, "metadata must be a JSON object")
    return value


def text(request: Any, name: str) -> str | None:
    """Returns an optional text of a message."""
    return storable(getattr(request, name)) if request.HasField(name) else None


def moment(message: Any, name: str) -> datetime | None:
    """Returns an optional time of a message. Raises InvalidArgument (TIME_INVALID)."""
    return moment_in(message, name, _invalid_time)


def _invalid_time(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{name} {problem}", reason="TIME_INVALID")
