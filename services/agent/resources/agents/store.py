"""Agents in Postgres, with SQLAlchemy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.messages import Message
from services.agent.postgres.rows import message_to_row
from services.agent.resources.agents import statements as reads
from services.agent.resources.agents import writes
from services.agent.resources.agents.counts import AgentCounts
from services.agent.resources.agents.eraser import stop_runs
from services.agent.resources.agents.model.settings import Agent, AgentSettings
from services.agent.resources.agents.model.sleeptime import Partner
from services.agent.resources.agents.ports import AgentList
from services.agent.resources.agents.rows import agent_columns, agent_from_row, agent_not_found
from services.agent.resources.agents.statements import parameters, present
from services.agent.resources.groups.writes import insert_group
from services.agent.resources.queries import autocommit, matches
from services.agent.resources.tables import agents, groups, outbox
from services.common.core.paging import PageOf
from services.common.errors import Aborted
from services.common.ids import uuid7
from services.common.keyset import Keyset

# What a deleted agent leaves to do, and when: who still reads one of its runs sees it end.
_PURGES = {"purge_memory": "0", "purge_receipts": "0", "purge_secrets": "0", "erase": "3 seconds"}


class PostgresAgents(AgentCounts):
    """`resources.agents.ports.AgentStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._engine = engine
        self._reading = autocommit(engine)

    async def reserve(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> bool:
        values = parameters(
            organization_id=organization_id,
            id=agent_id,
            reservation=_reservation(agent_id),
            payload={"user_id": str(user_id)},
        )
        async with self._reading.connect() as connection:
            return (await connection.execute(writes.RESERVE, values)).first() is not None

    async def release(self, organization_id: UUID, agent_id: UUID) -> None:
        values = parameters(organization_id=organization_id, reservation=_reservation(agent_id))
        async with self._reading.connect() as connection:
            await connection.execute(writes.RELEASE, values)

    async def insert(
        self,
        organization_id: UUID,
        agent_id: UUID,
        user_id: UUID,
        settings: AgentSettings,
        messages: Sequence[Message] = (),
        identity_ids: Sequence[UUID] = (),
        partner: Partner | None = None,
    ) -> Agent | None:
        values = _new_agent(organization_id, agent_id, user_id, settings, messages, identity_ids)
        try:
            # One statement needs no transaction around it.
            async with self._engine.begin() if partner else self._reading.connect() as connection:
                row = (await connection.execute(writes.INSERT, values)).first()
                if row is None:
                    return None
                if partner and not await _insert_partner(connection, organization_id, user_id, partner):
                    await connection.rollback()
                    return None
        except IntegrityError:
            return None
        return replace(agent_from_row(row._asdict()), window=tuple(message.id for message in messages))

    async def insert_partner(self, organization_id: UUID, user_id: UUID, agent_id: UUID, partner: Partner) -> bool:
        # Two that give it a partner at the same time wait for each other here.
        lock = select(agents.c.id).where(*_is_present(organization_id, agent_id)).with_for_update()
        group = select(groups.c.id).where(*matches(groups, organization_id=organization_id, manager_agent_id=agent_id))
        async with self._engine.begin() as connection:
            if (await connection.execute(lock)).first() is None:
                raise agent_not_found(agent_id)
            if (await connection.execute(group)).first() is not None:
                return False
            return await _insert_partner(connection, organization_id, user_id, partner)

    async def get(self, organization_id: UUID, agent_id: UUID) -> Agent:
        values = parameters(organization_id=organization_id, id=agent_id)
        async with self._reading.connect() as connection:
            row = (await connection.execute(reads.GET, values)).first()
        if row is None:
            raise agent_not_found(agent_id)
        return agent_from_row(row._asdict())

    async def list(self, organization_id: UUID, filters: AgentList) -> PageOf[Agent]:
        keyset = Keyset(agents, "agent", time=reads.order_time(filters))
        query = present(organization_id, agents.c.id, keyset.times).where(*reads.conditions_of(filters))
        async with self._reading.connect() as connection:
            page = await keyset.page(connection, query, filters.page, organization_id)
            # In a statement of its own, which never varies: to build it for each page costs more than to run both.
            values = parameters(organization_id=organization_id, ids=[row.id for row in page.items])
            rows = {row.id: row for row in await connection.execute(reads.MANY, values)}
        items = (agent_from_row(rows[row.id]._asdict()) for row in page.items if row.id in rows)
        return PageOf(tuple(items), page.next_token)

    async def update(
        self, organization_id: UUID, user_id: UUID, before: Agent, settings: AgentSettings
    ) -> Agent | None:
        statement = (
            update(agents)
            .where(*_is_present(organization_id, before.id), agents.c.version == before.version)
            .values(
                **agent_columns(settings),
                version=agents.c.version + 1,
                last_updated_by_id=user_id,
                updated_at=func.now(),
            )
            .returning(agents)
        )
        async with self._reading.connect() as connection:
            row = (await connection.execute(statement)).first()
        if row is None:
            return None
        after = agent_from_row(row._asdict())
        kept = ("window", "last_run", "waiting", "identities", "managed_group")
        return replace(after, **{name: getattr(before, name) for name in kept})

    async def reset_messages(self, organization_id: UUID, agent_id: UUID) -> Agent:
        values = parameters(organization_id=organization_id, id=agent_id)
        async with self._engine.begin() as connection:
            head = (await connection.execute(writes.LOCK, values)).first()
            if head is None:
                raise agent_not_found(agent_id)
            active = parameters(organization_id=organization_id, run_id=head.active_run_id)
            if (await connection.execute(writes.GOES_ON, active)).scalar_one():
                raise _busy(head.active_run_id)
            await connection.execute(writes.RESET, values | parameters(log_id=uuid7()))
        return await self.get(organization_id, agent_id)

    async def delete(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
        tombstone = update(agents).where(*_is_present(organization_id, agent_id)).values(deleted_at=func.now())
        async with self._engine.begin() as connection:
            if (await connection.execute(tombstone.returning(agents.c.id))).first() is None:
                raise agent_not_found(agent_id)
            for statement in writes.LEAVING:
                await connection.execute(statement, parameters(organization_id=organization_id, id=agent_id))
            await stop_runs(connection, organization_id, agent_id)
            await _order_purges(connection, organization_id, agent_id, user_id)


async def _insert_partner(connection: AsyncConnection, organization_id: UUID, user_id: UUID, partner: Partner) -> bool:
    """Returns whether the partner's reservation was there and has become an agent with a group."""
    values = _new_agent(organization_id, partner.agent_id, user_id, partner.settings)
    if (await connection.execute(writes.INSERT, values)).first() is None:
        return False
    await insert_group(connection, organization_id, partner.group_id, user_id, partner.group)
    return True


def _new_agent(
    organization_id: UUID,
    agent_id: UUID,
    user_id: UUID,
    settings: AgentSettings,
    messages: Sequence[Message] = (),
    identity_ids: Sequence[UUID] = (),
) -> Mapping[str, Any]:
    """Returns the parameters of writes.INSERT."""
    return parameters(
        **agent_columns(settings),
        organization_id=organization_id,
        id=agent_id,
        created_by_id=user_id,
        last_updated_by_id=user_id,
        reservation=_reservation(agent_id),
        log_id=uuid7(),
        messages=[message_to_row(message, place, 0) for place, message in enumerate(messages)],
        identity_ids=list(identity_ids),
    )


def _busy(run_id: UUID) -> Aborted:
    return Aborted(
        "The messages cannot be reset: a request is being processed for this conversation. Wait for it or cancel it. "
        f"(run_id=run-{run_id})",
        reason="CONVERSATION_BUSY",
        metadata={"run_id": f"run-{run_id}"},
    )


def _is_present(organization_id: UUID, agent_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return agents.c.organization_id == organization_id, agents.c.id == agent_id, agents.c.deleted_at.is_(None)


def _reservation(agent_id: UUID) -> UUID:
    return uuid5(agent_id, "reservation")


async def _order_purges(connection: AsyncConnection, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
    orders = [
        {
            "organization_id": organization_id,
            "id": uuid7(),
            "kind": kind,
            "subject_id": agent_id,
            "payload": {"user_id": str(user_id)},
            "not_before": func.now() + text(f"interval '{delay}'"),
        }
        for kind, delay in _PURGES.items()
    ]
    await connection.execute(insert(outbox).values(orders))
