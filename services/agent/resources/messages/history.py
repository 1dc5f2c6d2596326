"""The messages of conversations in Postgres, with SQLAlchemy.

A conversation is a short list of ranges of logs. Each range is read by its own index range, from where the page begins
and no further than it reaches, so that the cost of a page does not grow with the conversation.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, case, exists, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.messages import Message, system_message_id
from services.agent.core.page_tokens import MessagePage, Place, place_of, place_token
from services.agent.postgres.rows import message_from_row
from services.agent.resources.agents.rows import agent_from_row, agent_not_found
from services.agent.resources.agents.statements import LAST_SEQ
from services.agent.resources.messages.ports import Conversation
from services.agent.resources.queries import autocommit, shown_as
from services.agent.resources.tables import MESSAGE_COLUMNS, agents, conversation_segments, conversations, messages
from services.common.core.paging import PageOf, cut
from services.common.errors import NotFound
from services.common.keyset import sort_columns

# The system message is before all that is stored; what is after the last place comes after everything.
_SYSTEM = Place(-1, 0)
BEGINNING, END = Place(-2, 0), Place(2**31 - 1, 0)


class PostgresHistory:
    """`resources.messages.ports.History`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._reading = autocommit(engine)

    async def conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> Conversation:
        its_own = and_(
            conversations.c.organization_id == organization_id,
            conversations.c.id == conversation_id,
            conversations.c.agent_id == agent_id,
            conversations.c.deleted_at.is_(None),
        )
        sibling = conversations.alias()
        siblings = exists().where(
            sibling.c.organization_id == organization_id,
            sibling.c.agent_id == agent_id,
            sibling.c.id != conversation_id,
            sibling.c.deleted_at.is_(None),
        )
        query = (
            select(agents, conversations.c.created_at.label("begun_at"), siblings.label("has_siblings"))
            .outerjoin(conversations, its_own)
            .where(
                agents.c.organization_id == organization_id,
                agents.c.id == agent_id,
                agents.c.deleted_at.is_(None),
            )
        )
        async with self._reading.connect() as connection:
            row = (await connection.execute(query)).first()
        if row is None:
            raise agent_not_found(agent_id)
        if row.begun_at is None:
            raise NotFound(f"Conversation conv-{conversation_id} not found", reason="CONVERSATION_NOT_FOUND")
        return Conversation(conversation_id, agent_from_row(row._asdict()), row.begun_at, row.has_siblings)

    async def messages(
        self, organization_id: UUID, conversation_id: UUID, page: MessagePage, *, ignore_unknown_cursors: bool = False
    ) -> PageOf[Message | None]:
        async with self._reading.connect() as connection:
            low, high = await _bounds(
                connection, organization_id, conversation_id, page, lenient=ignore_unknown_cursors
            )
            query = between(organization_id, conversation_id, low, high, page)
            rows = (await connection.execute(query)).all()
        places: list[tuple[Place, Message | None]] = [
            (Place(row.ordinal, row.seq), message_from_row(row._asdict())) for row in rows
        ]
        if low < _SYSTEM < high:
            places.insert(0 if page.scan_ascending else len(places), (_SYSTEM, None))
        one = cut(places, page, lambda entry: place_token(entry[0]))
        return PageOf(tuple(message for _, message in one.items), one.next_token)


async def _bounds(
    connection: AsyncConnection, organization_id: UUID, conversation_id: UUID, page: MessagePage, *, lenient: bool
) -> tuple[Place, Place]:
    """Returns the places between which the page lies, both left out. `lenient`: unknown cursors are ignored."""
    places = []
    for cursor, default in ((page.after, BEGINNING), (page.before, END)):
        place = None if cursor is None else await _place(connection, organization_id, conversation_id, cursor)
        if cursor is not None and place is None and not lenient:
            sentence = f"No message found with id message-{cursor} in this conversation"
            raise NotFound(sentence, reason="MESSAGE_NOT_FOUND")
        places.append(default if place is None else place)
    low, high = places
    if page.token:
        place = place_of(page.token)
        low, high = (max(low, place), high) if page.scan_ascending else (low, min(high, place))
    return low, high


async def _place(
    connection: AsyncConnection, organization_id: UUID, conversation_id: UUID, message_id: UUID
) -> Place | None:
    if message_id == system_message_id(conversation_id):
        return _SYSTEM
    segment = conversation_segments
    query = (
        select(segment.c.ordinal, messages.c.seq)
        .select_from(messages.join(segment, _in_segment()))
        .where(
            messages.c.organization_id == organization_id,
            shown_as(messages.c.id, message_id),
            segment.c.organization_id == organization_id,
            segment.c.conversation_id == conversation_id,
        )
        .order_by(messages.c.id)
        .limit(1)
    )
    row = (await connection.execute(query)).first()
    return None if row is None else Place(*row)


def between(organization_id: UUID, conversation_id: UUID, low: Place, high: Place, page: MessagePage) -> Select[Any]:
    """Returns the messages of a conversation between two places, both left out, in the order of the page's scan."""
    segment, ascending = conversation_segments, page.scan_ascending
    # Of the segment that a bound lies in, only what is on this side of it.
    first = case((segment.c.ordinal == low.ordinal, low.seq + 1), else_=0)
    last = case((segment.c.ordinal == high.ordinal, high.seq - 1), else_=LAST_SEQ)
    of_segment = (
        select(*MESSAGE_COLUMNS)
        .where(
            messages.c.organization_id == organization_id,
            messages.c.log_id == segment.c.log_id,
            messages.c.seq >= func.greatest(segment.c.from_seq, first),
            messages.c.seq <= func.least(func.coalesce(segment.c.to_seq, LAST_SEQ), last),
        )
        .order_by(*sort_columns(messages.c.seq, ascending=ascending))
        .limit(page.size + 1)
        .lateral("of_segment")
    )
    return (
        select(segment.c.ordinal, of_segment)
        .select_from(segment.join(of_segment, true()))
        .where(
            segment.c.organization_id == organization_id,
            segment.c.conversation_id == conversation_id,
            segment.c.ordinal.between(low.ordinal, high.ordinal),
        )
        .order_by(*sort_columns(segment.c.ordinal, of_segment.c.seq, ascending=ascending))
        .limit(page.size + 1)
    )


def _in_segment() -> Any:
    segment = conversation_segments
    return and_(
        messages.c.log_id == segment.c.log_id,
        messages.c.seq.between(segment.c.from_seq, func.coalesce(segment.c.to_seq, LAST_SEQ)),
    )
