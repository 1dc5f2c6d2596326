"""Rows of conversations -> values."""

from collections.abc import Mapping
from typing import Any

from services.agent.resources.conversations.model import Conversation, ConversationSettings
from services.common.core.records import record


def conversation_from_row(row: Mapping[str, Any]) -> Conversation:
    """Returns a row of `conversations`, with `last_message_at`."""
    return Conversation(
        id=row["id"],
        agent_id=row["agent_id"],
        settings=record(ConversationSettings, row),
        isolated_labels=tuple(row["isolated_labels"]),
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"] or row["created_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
