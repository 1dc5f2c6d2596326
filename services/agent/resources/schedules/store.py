"""`resources.schedules.ports.ScheduleStore`."""

from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.postgres.line import LINE_SCHEMA_VERSION, input_to_line
from services.agent.resources.queries import autocommit
from services.agent.resources.schedules.ports import MOST_SCHEDULES, FirstTime, NewSchedule, Schedule
from services.agent.resources.schedules.rows import schedule_from_row
from services.agent.resources.tables import agents, schedules
from services.common.core.ceiling import ceiling_to_json
from services.common.core.paging import Page, PageOf
from services.common.errors import AlreadyExists, NotFound, ResourceExhausted
from services.common.ids import to_public
from services.common.keyset import Keyset

# Locked, so that two do not count at the same time.
_AGENT = """
SELECT timezone, now() AS now FROM agent.agents
WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE
"""
_GET = "SELECT * FROM agent.schedules WHERE organization_id = $1 AND id = $2"
_WAITING = "SELECT count(*) FROM agent.schedules WHERE organization_id = $1 AND agent_id = $2 AND next_at IS NOT NULL"
# The newest that are over are kept, $3 of them.
_TIDY = """
DELETE FROM agent.schedules WHERE organization_id = $1 AND id IN (
    SELECT id FROM agent.schedules WHERE organization_id = $1 AND agent_id = $2 AND next_at IS NULL
    ORDER BY last_at DESC NULLS LAST OFFSET $3
)
"""
_INSERT = """
INSERT INTO agent.schedules
    (organization_id, id, agent_id, user_id, schema_version, input, cron, timezone, due_at, next_at, ceiling)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10) RETURNING *
"""
_DELETE = "DELETE FROM agent.schedules WHERE organization_id = $1 AND agent_id = $2 AND id = $3 RETURNING id"

_KEYSET = Keyset(schedules, "schedule")


class PostgresSchedules:
    """Schedules of tenants."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._reading = autocommit(engine)

    async def create(self, draft: NewSchedule, first: FirstTime) -> Schedule:
        async with self._pool.acquire() as connection, connection.transaction():
            agent = await connection.fetchrow(_AGENT, draft.organization_id, draft.agent_id)
            if agent is None:
                raise _no_agent(draft.agent_id)
            if (there := await connection.fetchrow(_GET, draft.organization_id, draft.id)) is not None:
                if there["agent_id"] != draft.agent_id:
                    sentence = f"{to_public('schedule', draft.id)} is a schedule of another agent"
                    raise AlreadyExists(sentence, reason="SCHEDULE_ID_TAKEN")
                return schedule_from_row(there)
            due = first(draft.when, agent["timezone"], agent["now"])
            await self._make_room(connection, draft)
            row = await connection.fetchrow(
                _INSERT,
                draft.organization_id,
                draft.id,
                draft.agent_id,
                draft.user_id,
                LINE_SCHEMA_VERSION,
                input_to_line(draft.messages, draft.options),
                draft.when.cron,
                agent["timezone"],
                due,
                ceiling_to_json(draft.ceiling),
            )
            return schedule_from_row(row)

    async def _make_room(self, connection: Any, draft: NewSchedule) -> None:
        ids = (draft.organization_id, draft.agent_id)
        if await connection.fetchval(_WAITING, *ids) >= MOST_SCHEDULES:
            raise ResourceExhausted(
                f"{MOST_SCHEDULES} messages of this agent wait for their time already; delete some first",
                reason="SCHEDULES_TOO_MANY",
            )
        await connection.execute(_TIDY, *ids, MOST_SCHEDULES)

    async def get(self, organization_id: UUID, agent_id: UUID, schedule_id: UUID) -> Schedule:
        row = await self._pool.fetchrow(_GET, organization_id, schedule_id)
        if row is None or row["agent_id"] != agent_id:
            raise _no_schedule(schedule_id)
        return schedule_from_row(row)

    async def list(self, organization_id: UUID, agent_id: UUID, page: Page) -> PageOf[Schedule]:
        ours = schedules.c.organization_id == organization_id, schedules.c.agent_id == agent_id
        async with self._reading.connect() as connection:
            alive = select(agents.c.id).where(
                agents.c.organization_id == organization_id, agents.c.id == agent_id, agents.c.deleted_at.is_(None)
            )
            if (await connection.execute(alive)).first() is None:
                raise _no_agent(agent_id)
            query = select(schedules).where(*ours)
            listed = await _KEYSET.page(connection, query, page, organization_id)
        return listed.map(lambda row: schedule_from_row(row._mapping))

    async def delete(self, organization_id: UUID, agent_id: UUID, schedule_id: UUID) -> None:
        if await self._pool.fetchval(_DELETE, organization_id, agent_id, schedule_id) is None:
            raise _no_schedule(schedule_id)


def _no_agent(agent_id: UUID) -> NotFound:
    return NotFound(f"Agent {to_public('agent', agent_id)} was not found", reason="AGENT_NOT_FOUND")


def _no_schedule(schedule_id: UUID) -> NotFound:
    sentence = f"The agent has no schedule {to_public('schedule', schedule_id)}"
    return NotFound(sentence, reason="SCHEDULE_NOT_FOUND")
