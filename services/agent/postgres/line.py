"""The input of a request that waits in line: durable JSON with a schema version of its own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.agent.core.fact_log import options_from_json, options_to_json
from services.agent.core.facts import Options
from services.agent.core.messages import Message, Part, parts_from_json, parts_to_json, readable_parts
from services.agent.core.releases import NewerRelease

LINE_SCHEMA_VERSION = 2


def input_to_line(messages: Sequence[Message], options: Options) -> dict[str, Any]:
    """Returns the stored form."""
    return {"options": options_to_json(options), "messages": [_to_line(message) for message in messages]}


def input_from_line(
    schema_version: int, stored: Mapping[str, Any], run_id: UUID
) -> tuple[tuple[Message, ...], Options]:
    """Returns the messages, dated now, and the options. Raises NewerRelease."""
    if schema_version > LINE_SCHEMA_VERSION:
        raise NewerRelease(
            f"a waiting input has schema version {schema_version}; this release reads up to {LINE_SCHEMA_VERSION}"
        )
    now = datetime.now(UTC)
    # The first release knew of one option.
    options = stored["options"] if schema_version > 1 else {"max_steps": stored["max_steps"]}
    messages = tuple(_from_line(message, run_id, now, parts_from_json) for message in stored["messages"])
    return messages, options_from_json(options)


def said_in_line(stored: Mapping[str, Any], run_id: UUID) -> tuple[Message, ...]:
    """Returns what is said in an input that no run begins with, as far as this release can read it; an answer to a
    call says nothing where there is no run that takes it.
    """
    now = datetime.now(UTC)
    messages = (_from_line(message, run_id, now, readable_parts) for message in stored["messages"])
    return tuple(message for message in messages if message.role != "approval")


def _to_line(message: Message) -> dict[str, Any]:
    stored = {"id": message.id, "role": message.role, "parts": parts_to_json(message.parts)}
    return stored | {"name": message.name, "otid": message.otid, "sender_id": message.sender_id}


def _from_line(
    stored: Mapping[str, Any], run_id: UUID, now: datetime, read: Callable[[Iterable[dict[str, Any]]], tuple[Part, ...]]
) -> Message:
    return Message(
        id=UUID(stored["id"]),
        role=stored["role"],
        parts=read(stored["parts"]),
        created_at=now,
        run_id=run_id,
        name=stored["name"],
        otid=stored["otid"],
        sender_id=stored["sender_id"],
    )
