"""Errors about stored messages."""

from uuid import UUID

from services.common.errors import NotFound


def no_such_message(message_id: UUID) -> NotFound:
    """The error for a message that is not there."""
    return NotFound(f"Message message-{message_id} not found", reason="MESSAGE_NOT_FOUND")
