"""Statements about a conversation that turns share: its window, its line, its head."""

import logging
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.ports_journal import Successor
from services.agent.postgres import line_sql, sql
from services.agent.postgres.line import UNREADABLE, said_in_line
from services.agent.postgres.rows import input_rows, message_from_row

_log = logging.getLogger(__name__)

# Messages that a window holds at most; the newest count.
WINDOW_MESSAGES = 1_000


async def window(connection: Any, organization_id: UUID, conversation_id: UUID) -> tuple[Message, ...]:
    """Returns the messages of a conversation's window, oldest first."""
    rows = await connection.fetch(sql.WINDOW, organization_id, conversation_id, WINDOW_MESSAGES)
    return tuple(message_from_row(row) for row in reversed(rows))


async def promote(connection: Any, organization_id: UUID, conversation_id: UUID) -> Successor | None:
    """Gives the turn to the next in line. Needs the lock of the head, in a statement before this one."""
    row = await connection.fetchrow(line_sql.PROMOTE, organization_id, conversation_id)
    if row["cancelled"]:
        await _say_cancelled(connection, organization_id, conversation_id, row["entered_at"])
    return None if row["run_id"] is None else (row["run_id"], row["home_id"])


async def _say_cancelled(
    connection: Any, organization_id: UUID, conversation_id: UUID, before: datetime | None
) -> None:
    """Puts into the log what was cancelled in the line before its turn came."""
    for row in await connection.fetch(line_sql.TAKE_CANCELLED, organization_id, conversation_id, before):
        ids = {"organization_id": organization_id, "conversation_id": conversation_id, "run_id": row["run_id"]}
        try:
            # Apart: what cannot be stored must not hold up the line.
            async with connection.transaction():
                messages = said_in_line(row["input"], row["run_id"])
                said = line_sql.SAY.bind(**ids, messages=input_rows(messages), message_count=len(messages))
                await connection.execute(*said)
        except UNREADABLE:
            _log.exception("what run %s was to say cannot be kept", row["run_id"])


async def release(
    connection: Any, organization_id: UUID, conversation_id: UUID, run_id: UUID | None
) -> Successor | None:
    """Takes the turn from a run that has ended without saying so, or from none, and gives it to the next in line."""
    waiting = await connection.fetchval(line_sql.RELEASE_HEAD, organization_id, conversation_id, run_id)
    return await promote(connection, organization_id, conversation_id) if waiting else None
