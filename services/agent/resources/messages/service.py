"""Errors about stored messages."""

from uuid import UUID

from services.common.errors import NotFound


def message_not_found(message_id: UUID) -> NotFound:
    """Returns the error for a message that is not there."""
    return NotFound(f"Message message-{message_id} not found", reason="MESSAGE_NOT_FOUND")
