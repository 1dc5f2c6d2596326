"""Checkpoints in Postgres: listed, gone back to, forked from."""

from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.core.page_tokens import Place, place_of, place_token
from services.agent.postgres.waiting_calls import wait_or_settle
from services.agent.resources.checkpoints import sql
from services.agent.resources.checkpoints.model import (
    Checkpoint,
    CheckpointRef,
)
from services.agent.resources.checkpoints.points import END_OF_ALL, end_of, find_point
from services.agent.resources.checkpoints.ports import AgentFork, Inheritance, Point, Rewind
from services.agent.resources.checkpoints.rows import (
    arrays,
    checkpoint_from_row,
    rewind_from_row,
)
from services.agent.resources.conversations.model import Conversation
from services.agent.resources.conversations.ports import NewConversation
from services.agent.resources.conversations.rows import conversation_from_row
from services.common.core.paging import Moment, Page, PageOf, cut, moment_of, moment_token
from services.common.ids import uuid7


class PostgresCheckpoints:
    """`resources.checkpoints.ports.CheckpointStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def list(
        self,
        organization_id: UUID,
        conversation_id: UUID,
        *,
        size: int,
        token: str = "",
        after: Checkpoint | None = None,
    ) -> PageOf[Checkpoint]:
        before = min(place_of(token) if token else END_OF_ALL, END_OF_ALL if after is None else Place(*after.place))
        rows = await self._pool.fetch(sql.LIST, organization_id, conversation_id, *before, size + 1)
        return cut([checkpoint_from_row(row) for row in rows], Page(size), lambda each: place_token(Place(*each.place)))

    async def find(self, organization_id: UUID, conversation_id: UUID, ref: CheckpointRef) -> Point:
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await find_point(connection, organization_id, conversation_id, ref)

    async def rewinds(self, organization_id: UUID, conversation_id: UUID, *, size: int, token: str) -> PageOf[Rewind]:
        last = tuple(moment_of(token)) if token else (None, None)
        rows = await self._pool.fetch(sql.REWINDS, organization_id, conversation_id, *last, size + 1)
        listed = [rewind_from_row(conversation_id, row) for row in rows]
        return cut(listed, Page(size), lambda each: moment_token(Moment(each.created_at, each.id)))

    async def fork(
        self, new: NewConversation, source_id: UUID, point: Point, *, reserved: bool, hidden: bool
    ) -> Conversation | None:
        statement = sql.FORK_CONVERSATION.bind(
            **_beginning(new.organization_id, point),
            source_id=source_id,
            reservation_id=reservation(new.id) if reserved else None,
            id=new.id,
            user_id=new.user_id,
            isolated_labels=list(new.isolated_labels),
            hidden=hidden,
        )
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(*statement)
            if row is not None:
                await wait_or_settle(connection, new.organization_id, new.id, may_wait=True)
        return None if row is None else conversation_from_row(row)

    async def fork_agent(self, fork: AgentFork, point: Point) -> bool:
        inheritance = fork.inheritance
        statement = sql.FORK_AGENT.bind(
            **_beginning(fork.organization_id, point),
            source_id=fork.conversation_id,
            reservation_id=reservation(fork.id),
            id=fork.id,
            user_id=fork.user_id,
            name=fork.name,
            message_id=inheritance.message_id,
            block_ids=list(inheritance.block_ids),
            archive_ids=list(inheritance.archive_ids),
        )
        async with self._pool.acquire() as connection, connection.transaction():
            agent_id = await connection.fetchval(*statement)
            if agent_id is not None:
                await wait_or_settle(connection, fork.organization_id, fork.id, may_wait=False)
        return agent_id is not None

    async def inheritance(self, organization_id: UUID, agent_id: UUID) -> Inheritance | None:
        row = await self._pool.fetchrow(sql.FORKED, organization_id, agent_id)
        return None if row is None else Inheritance(row[0], tuple(row[1]), tuple(row[2]))


def reservation(new_id: UUID) -> UUID:
    """Returns the id of the order that sweeps the parts of a new agent or conversation that never came to be."""
    return uuid5(new_id, "reservation")


def _beginning(organization_id: UUID, point: Point) -> dict[str, Any]:
    """Returns the parameters of how a fork begins."""
    logs, firsts, lasts = arrays(point.segments)
    return {
        "organization_id": organization_id,
        "logs": logs,
        "firsts": firsts,
        "lasts": lasts,
        "log_id": uuid7(),
        "first_seq": end_of(point).seq + 1,
        "window_segment": point.view.segment,
        "window_seq": point.view.seq,
        "summary_id": point.view.summary_id,
    }
