"""Connections for lists, and the ids that messages are listed under."""

from uuid import UUID

from sqlalchemy import ColumnElement
from sqlalchemy.ext.asyncio import AsyncEngine

_LAST_ID = 2**128 - 1


def reading(engine: AsyncEngine) -> AsyncEngine:
    """Returns the same pool for single statements: without BEGIN and ROLLBACK around each."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def shown_as(ids: ColumnElement[UUID], message_id: UUID) -> ColumnElement[bool]:
    """Messages that are shown under an id, the one that has it first by id.

    Calls that wait for the client are shown under the id before that of their message; see `messages.piece_id`.
    """
    return ids.in_((message_id, UUID(int=min(message_id.int + 1, _LAST_ID))))
