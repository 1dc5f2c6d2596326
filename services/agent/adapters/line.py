"""The input of a request that waits in line: durable JSON with a schema version of its own."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.agent.messages import Message, parts_from_json, parts_to_json

LINE_SCHEMA_VERSION = 1


def messages_to_line(messages: Sequence[Message], max_steps: int) -> dict[str, Any]:
    """The stored form."""
    return {"max_steps": max_steps, "messages": [_to_line(message) for message in messages]}


def messages_from_line(schema_version: int, stored: Mapping[str, Any], run_id: UUID) -> tuple[tuple[Message, ...], int]:
    """The messages, dated now, and the step limit. Raises ValueError for what a newer release wrote."""
    if schema_version > LINE_SCHEMA_VERSION:
        raise ValueError(f"a waiting input has schema version {schema_version}; this release reads 1")
    now = datetime.now(UTC)
    return tuple(_from_line(message, run_id, now) for message in stored["messages"]), stored["max_steps"]


def _to_line(message: Message) -> dict[str, Any]:
    stored = {"id": message.id, "role": message.role, "parts": parts_to_json(message.parts)}
    return stored | {"name": message.name, "otid": message.otid, "sender_id": message.sender_id}


def _from_line(stored: Mapping[str, Any], run_id: UUID, now: datetime) -> Message:
    return Message(
        id=UUID(stored["id"]),
        role=stored["role"],
        parts=parts_from_json(stored["parts"]),
        created_at=now,
        run_id=run_id,
        name=stored["name"],
        otid=stored["otid"],
        sender_id=stored["sender_id"],
    )
