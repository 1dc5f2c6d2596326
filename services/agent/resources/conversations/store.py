"""Conversations in Postgres: made and forked by one statement each, listed and changed with SQLAlchemy."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID, uuid5

import asyncpg
from sqlalchemy import ColumnElement, Select, Subquery, and_, func, select, true, update
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.core.messages import system_message_id
from services.agent.core.page_tokens import Place
from services.agent.postgres.rows import message_from_row
from services.agent.resources.agents.model.settings import PendingApproval
from services.agent.resources.agents.statements import window_of
from services.agent.resources.conversations import sql
from services.agent.resources.conversations.eraser import stop_runs
from services.agent.resources.conversations.model import Conversation, ConversationSettings
from services.agent.resources.conversations.ports import ConversationList, ConversationOrder, NewConversation
from services.agent.resources.conversations.rows import conversation_from_row
from services.agent.resources.conversations.service import conversation_not_found
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import (
    MESSAGE_COLUMNS,
    agents,
    conversation_heads,
    conversations,
    messages,
    runs,
)
from services.common.core.paging import PageOf
from services.common.core.records import columns
from services.common.errors import NotFound
from services.common.ids import uuid7
from services.common.keyset import Keyset

# What a deleted conversation leaves to do, and when: who still reads one of its runs sees it end.
_PURGES = {"purge_conversation": 0.0, "erase_conversation": 3.0}
# Before everything that was said: what the compiled system message stands for.
_BEGINNING = Place(-1, 0)

_MOST_WAITING = 200
_SETTINGS = tuple(each.name for each in fields(ConversationSettings))


class PostgresConversations:
    """`resources.conversations.ports.ConversationStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._engine = engine
        self._reading = autocommit(engine)

    async def reserve(self, new: NewConversation) -> bool:
        statement = sql.RESERVE.bind(
            organization_id=new.organization_id,
            reservation_id=_reservation(new),
            id=new.id,
            payload={"user_id": str(new.user_id), "agent_id": str(new.agent_id)},
        )
        return await self._pool.fetchval(*statement) is not None

    async def release(self, new: NewConversation) -> None:
        statement = sql.RELEASE.bind(organization_id=new.organization_id, reservation_id=_reservation(new))
        await self._pool.execute(*statement)

    async def insert(self, new: NewConversation, settings: ConversationSettings) -> Conversation | None:
        row = await self._pool.fetchrow(*sql.INSERT.bind(**_of_new(new), **columns(settings, _SETTINGS)))
        return None if row is None else conversation_from_row(row)

    async def fork(
        self, new: NewConversation, source_id: UUID, cut: Place | None, *, hidden: bool
    ) -> Conversation | None:
        last_ordinal, last_seq = cut or (None, None)
        where = {"source_id": source_id, "last_ordinal": last_ordinal, "last_seq": last_seq}
        row = await self._pool.fetchrow(*sql.FORK.bind(**_of_new(new), **where, hidden=hidden))
        return None if row is None else conversation_from_row(row)

    async def place(self, organization_id: UUID, conversation_id: UUID, message_id: UUID) -> Place:
        if message_id == system_message_id(conversation_id):
            return _BEGINNING
        row = await self._pool.fetchrow(sql.PLACE, organization_id, conversation_id, message_id)
        if row is None:
            sentence = f"The message message-{message_id} was not found in this conversation"
            raise NotFound(sentence, reason="MESSAGE_NOT_FOUND")
        return Place(*row)

    async def get(self, organization_id: UUID, conversation_id: UUID) -> Conversation:
        listed = _listed(organization_id, "created_at")
        async with self._reading.connect() as connection:
            row = (await connection.execute(_present(listed).where(listed.c.id == conversation_id))).first()
        if row is None:
            raise conversation_not_found(conversation_id)
        return conversation_from_row(row._asdict())

    async def window(self, organization_id: UUID, conversation_id: UUID) -> tuple[UUID, ...]:
        rows = (
            select(conversations.c.organization_id, conversations.c.id)
            .where(conversations.c.organization_id == organization_id, conversations.c.id == conversation_id)
            .subquery("found")
        )
        view = window_of(rows)
        async with self._reading.connect() as connection:
            ids = (await connection.execute(select(view).select_from(rows.join(view, true())))).scalar_one_or_none()
        return tuple(ids or ())

    async def list(self, organization_id: UUID, filters: ConversationList) -> PageOf[Conversation]:
        listed = _listed(organization_id, filters.order)
        query = _present(listed).where(*_conditions(filters, listed))
        async with self._reading.connect() as connection:
            keyset = Keyset(listed, "conv", time=listed.c.time)
            page = await keyset.page(connection, query, filters.page, organization_id)
        return page.map(lambda row: conversation_from_row(row._asdict()))

    async def waiting(self, organization_id: UUID, agent_id: UUID) -> Sequence[tuple[UUID, PendingApproval]]:
        head = conversation_heads
        its_head = and_(
            head.c.organization_id == conversations.c.organization_id, head.c.conversation_id == conversations.c.id
        )
        its_message = and_(
            messages.c.organization_id == head.c.organization_id, messages.c.id == head.c.pending_message_id
        )
        query = (
            select(conversations.c.id.label("place"), head.c.approval_due, *MESSAGE_COLUMNS)
            .select_from(conversations.join(head, its_head).join(messages, its_message))
            .where(
                conversations.c.organization_id == organization_id,
                conversations.c.agent_id == agent_id,
                conversations.c.deleted_at.is_(None),
            )
            .order_by(head.c.approval_due.asc().nulls_last(), messages.c.created_at)
            .limit(_MOST_WAITING)
        )
        async with self._reading.connect() as connection:
            rows = [row._asdict() for row in await connection.execute(query)]
        return [(row["place"], PendingApproval(message_from_row(row), row["approval_due"])) for row in rows]

    async def update(
        self, organization_id: UUID, user_id: UUID, conversation_id: UUID, values: Mapping[str, Any]
    ) -> Conversation:
        own = {name: value for name, value in values.items() if name != "last_message_at"}
        its_own = (conversations.c.organization_id == organization_id, conversations.c.id == conversation_id)
        statement = (
            update(conversations)
            .where(*its_own, conversations.c.deleted_at.is_(None))
            .values(**own, last_updated_by_id=user_id, updated_at=func.now())
        )
        head = (
            update(conversation_heads)
            .where(
                conversation_heads.c.organization_id == organization_id,
                conversation_heads.c.conversation_id == conversation_id,
            )
            .values(last_message_at=values.get("last_message_at"))
        )
        async with self._engine.begin() as connection:
            await connection.execute(statement)
            if "last_message_at" in values:
                await connection.execute(head)
        return await self.get(organization_id, conversation_id)

    async def delete(self, organization_id: UUID, conversation_id: UUID, user_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            agent_id = await connection.fetchval(sql.BURY, organization_id, conversation_id)
            if agent_id is None:
                raise conversation_not_found(conversation_id)
            await stop_runs(connection, organization_id, conversation_id)
            payload = {"user_id": str(user_id), "agent_id": str(agent_id)}
            for kind, delay in _PURGES.items():
                await connection.execute(sql.ORDER, organization_id, conversation_id, uuid7(), kind, payload, delay)


def _of_new(new: NewConversation) -> dict[str, Any]:
    """Returns the parameters that INSERT and FORK share."""
    return {
        "organization_id": new.organization_id,
        "reservation_id": _reservation(new) if new.isolated_labels else None,
        "id": new.id,
        "agent_id": new.agent_id,
        "user_id": new.user_id,
        "isolated_labels": list(new.isolated_labels),
        "log_id": uuid7(),
    }


def _reservation(new: NewConversation) -> UUID:
    return uuid5(new.id, "reservation")


def _listed(organization_id: UUID, by: ConversationOrder) -> Subquery:
    """The tenant's conversations that are not default ones, deleted ones too, each with the time it is ordered by."""
    head = conversation_heads
    its_head = and_(
        head.c.organization_id == conversations.c.organization_id, head.c.conversation_id == conversations.c.id
    )
    times: dict[ConversationOrder, ColumnElement[Any]] = {
        "created_at": conversations.c.created_at,
        "last_message_at": func.coalesce(head.c.last_message_at, conversations.c.created_at),
        "last_run_completion": func.coalesce(_last_completion(), conversations.c.created_at),
    }
    return (
        select(conversations, head.c.last_message_at, times[by].label("time"))
        .join(head, its_head)
        .where(conversations.c.organization_id == organization_id, conversations.c.id != conversations.c.agent_id)
        .subquery("conversations")
    )


def _last_completion() -> ColumnElement[Any]:
    """Returns when the newest run that has ended did so."""
    return (
        select(runs.c.completed_at)
        .where(
            runs.c.organization_id == conversations.c.organization_id,
            runs.c.conversation_id == conversations.c.id,
            runs.c.completed_at.is_not(None),
        )
        .order_by(runs.c.created_at.desc())
        .limit(1)
        .correlate(conversations)
        .scalar_subquery()
    )


def _present(listed: Subquery) -> Select[Any]:
    agent = and_(agents.c.organization_id == listed.c.organization_id, agents.c.id == listed.c.agent_id)
    return select(listed).join(agents, agent).where(listed.c.deleted_at.is_(None), agents.c.deleted_at.is_(None))


def _conditions(filters: ConversationList, listed: Subquery) -> list[ColumnElement[bool]]:
    """Returns the conditions of a list's filters."""
    conditions: list[ColumnElement[bool]] = []
    if filters.agent_id is not None:
        conditions.append(listed.c.agent_id == filters.agent_id)
    if filters.archived is not None:
        conditions.append(listed.c.archived_at.is_not(None) if filters.archived else listed.c.archived_at.is_(None))
    if filters.summary_search:
        conditions.append(listed.c.summary.icontains(filters.summary_search, autoescape=True))
    if not filters.show_hidden:
        conditions.append(listed.c.hidden.is_(False))
    return conditions
