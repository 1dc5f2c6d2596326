"""Agents in Postgres, with SQLAlchemy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, func, insert, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.messages import Message
from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
from services.agent.postgres.rows import message_from_row, message_to_row
from services.agent.resources.agents import statements as reads
from services.agent.resources.agents import writes
from services.agent.resources.agents.counts import AgentCounts
from services.agent.resources.agents.eraser import stop_runs
from services.agent.resources.agents.model.settings import SETTABLE, Agent, AgentSettings, LastRun, PendingApproval
from services.agent.resources.agents.ports import AgentList
from services.agent.resources.agents.statements import WAITING, parameters, present
from services.agent.resources.groups.model import Group
from services.agent.resources.identities.model import Identity
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import MESSAGE_COLUMNS, agents, outbox
from services.common.core.paging import PageOf
from services.common.core.records import columns, record, record_from_json
from services.common.errors import Aborted, NotFound
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
    ) -> Agent | None:
        values = parameters(
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
        try:
            async with self._reading.connect() as connection:
                row = (await connection.execute(writes.INSERT, values)).first()
        except IntegrityError:
            return None
        if row is None:
            return None
        return replace(agent_from_row(row._asdict()), window=tuple(message.id for message in messages))

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


def agent_not_found(agent_id: UUID) -> NotFound:
    """Returns the error for an agent that is not there."""
    return NotFound(f"Agent agent-{agent_id} not found", reason="AGENT_NOT_FOUND")


def agent_from_row(row: Mapping[str, Any]) -> Agent:
    """Returns a row of `agents`, with what `statements.whole` adds to it where the query has its columns."""
    settings = replace(record(AgentSettings, row), tool_rules=rules_from_json(row["tool_rules"]))
    return Agent(
        id=row["id"],
        version=row["version"],
        settings=settings,
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        window=tuple(row.get("window") or ()),
        last_run=_last_run(row),
        waiting=_waiting(row),
        identities=tuple(record_from_json(Identity, each) for each in row.get("identities") or ()),
        managed_group=record_from_json(Group, row["managed_group"]) if row.get("managed_group") else None,
    )


def _last_run(row: Mapping[str, Any]) -> LastRun | None:
    if not row.get("run_completed_at"):
        return None
    return LastRun(row["run_stop_reason"], row["run_created_at"], row["run_completed_at"])


def _waiting(row: Mapping[str, Any]) -> PendingApproval | None:
    if not row.get(f"{WAITING}id"):
        return None
    message = message_from_row({column.name: row[WAITING + column.name] for column in MESSAGE_COLUMNS})
    return PendingApproval(message, row["approval_due"])


def agent_columns(settings: AgentSettings) -> dict[str, Any]:
    """Returns the columns of an agent's row that hold its settings."""
    return columns(settings, SETTABLE) | {"tool_rules": rules_to_json(settings.tool_rules)}


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
