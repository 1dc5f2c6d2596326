"""Statements about a conversation that turns share: its window, its line, its head."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.ports_journal import Successor
from services.agent.postgres import sql
from services.agent.postgres.rows import message_from_row

# Messages that a window holds at most; the newest count.
WINDOW_MESSAGES = 1_000


async def window(connection: Any, organization_id: UUID, conversation_id: UUID) -> tuple[Message, ...]:
    """Returns the messages of a conversation's window, oldest first."""
    rows = await connection.fetch(sql.WINDOW, organization_id, conversation_id, WINDOW_MESSAGES)
    return tuple(message_from_row(row) for row in reversed(rows))


async def promote(connection: Any, organization_id: UUID, conversation_id: UUID) -> Successor | None:
    """Gives the turn to the next in line. Needs the lock of the head, in a statement before this one."""
    row: Mapping[str, Any] | None = await connection.fetchrow(sql.PROMOTE, organization_id, conversation_id)
    return None if row is None else (row["run_id"], row["home_id"])


async def release(
    connection: Any, organization_id: UUID, conversation_id: UUID, run_id: UUID | None
) -> Successor | None:
    """Takes the turn from a run that has ended without saying so, or from none, and gives it to the next in line."""
    waiting = await connection.fetchval(sql.RELEASE_HEAD, organization_id, conversation_id, run_id)
    return await promote(connection, organization_id, conversation_id) if waiting else None
