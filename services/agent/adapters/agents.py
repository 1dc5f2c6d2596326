"""Agents in Postgres, with SQLAlchemy."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, func, insert, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.adapters import agent_statements as statements
from services.agent.adapters.agent_statements import given, present, whole
from services.agent.adapters.erasing import stop_runs
from services.agent.adapters.paging import bounded, order, page_of, reading
from services.agent.adapters.tables import agents, outbox
from services.agent.agents import SETTABLE, Agent, AgentSettings, LastRun
from services.agent.ports_admin import AgentList
from services.common.errors import NotFound
from services.common.ids import uuid7
from services.common.paging import PageOf

# What a deleted agent leaves to do, and when: who still reads one of its runs sees it end.
_PURGES = {"purge_memory": "0", "purge_receipts": "0", "erase": "3 seconds"}


class PostgresAgents:
    """`ports_admin.AgentStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = reading(engine)

    async def reserve(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> bool:
        values = given(
            organization_id=organization_id,
            id=agent_id,
            reservation=_reservation(agent_id),
            payload={"user_id": str(user_id)},
        )
        async with self._reading.connect() as connection:
            return (await connection.execute(statements.RESERVE, values)).first() is not None

    async def release(self, organization_id: UUID, agent_id: UUID) -> None:
        values = given(organization_id=organization_id, reservation=_reservation(agent_id))
        async with self._reading.connect() as connection:
            await connection.execute(statements.RELEASE, values)

    async def insert(
        self, organization_id: UUID, agent_id: UUID, user_id: UUID, settings: AgentSettings
    ) -> Agent | None:
        values = given(
            **_columns(settings),
            organization_id=organization_id,
            id=agent_id,
            created_by_id=user_id,
            last_updated_by_id=user_id,
            reservation=_reservation(agent_id),
            log_id=uuid7(),
        )
        try:
            async with self._reading.connect() as connection:
                row = (await connection.execute(statements.INSERT, values)).first()
        except IntegrityError:
            return None
        return None if row is None else agent_from_row(row._asdict())

    async def get(self, organization_id: UUID, agent_id: UUID) -> Agent:
        values = given(organization_id=organization_id, id=agent_id)
        async with self._reading.connect() as connection:
            row = (await connection.execute(statements.GET, values)).first()
        if row is None:
            raise no_such_agent(agent_id)
        return agent_from_row(row._asdict())

    async def list(self, organization_id: UUID, wanted: AgentList) -> PageOf[Agent]:
        time = agents.c.updated_at if wanted.by_update else agents.c.created_at
        page = wanted.page
        async with self._reading.connect() as connection:
            found = present(organization_id).where(*statements.filters(wanted))
            found = await bounded(connection, found, agents, time, page, organization_id)
            query = whole(found, lambda rows: order(rows.c[time.name], rows.c.id, ascending=page.scan_ascending))
            rows = (await connection.execute(query)).all()
        one = page_of(rows, time.name, page)
        return PageOf(tuple(agent_from_row(row._asdict()) for row in one.items), one.next_token)

    async def update(
        self, organization_id: UUID, user_id: UUID, before: Agent, settings: AgentSettings
    ) -> Agent | None:
        statement = (
            update(agents)
            .where(*_is_present(organization_id, before.id), agents.c.version == before.version)
            .values(
                **_columns(settings),
                version=agents.c.version + 1,
                last_updated_by_id=user_id,
                updated_at=func.now(),
            )
            .returning(agents)
        )
        async with self._reading.connect() as connection:
            row = (await connection.execute(statement)).first()
        return None if row is None else agent_from_row(row._asdict(), before.window, before.last_run)

    async def delete(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
        tombstone = update(agents).where(*_is_present(organization_id, agent_id)).values(deleted_at=func.now())
        async with self._engine.begin() as connection:
            if (await connection.execute(tombstone.returning(agents.c.id))).first() is None:
                raise no_such_agent(agent_id)
            await stop_runs(connection, organization_id, agent_id)
            await _order_purges(connection, organization_id, agent_id, user_id)


def no_such_agent(agent_id: UUID) -> NotFound:
    """The error for an agent that is not there."""
    return NotFound(f"Agent agent-{agent_id} not found", reason="AGENT_NOT_FOUND")


def agent_from_row(row: Mapping[str, Any], window: tuple[UUID, ...] = (), last_run: LastRun | None = None) -> Agent:
    """A row of `agents`, with its window and its last run where the query has their columns."""
    if row.get("window"):
        window = tuple(row["window"])
    if row.get("run_completed_at"):
        last_run = LastRun(row["run_stop_reason"], row["run_created_at"], row["run_completed_at"])
    settings = {name: row[name] for name in SETTABLE}
    settings |= {"tool_ids": tuple(row["tool_ids"]), "tags": tuple(row["tags"])}
    return Agent(
        id=row["id"],
        version=row["version"],
        settings=AgentSettings(**settings),
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        window=window,
        last_run=last_run,
    )


def _columns(settings: AgentSettings) -> dict[str, Any]:
    values = {name: getattr(settings, name) for name in SETTABLE}
    return values | {"tool_ids": list(settings.tool_ids), "tags": list(settings.tags)}


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
