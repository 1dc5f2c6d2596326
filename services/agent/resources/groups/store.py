"""Groups of agents in Postgres, with SQLAlchemy."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, exists, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.resources.agents.locks import lock_agents
from services.agent.resources.groups.model import Group, GroupList, GroupSettings
from services.agent.resources.groups.rows import members_of
from services.agent.resources.groups.writes import COLUMNS, insert_group, join
from services.agent.resources.queries import autocommit, equal_to, matches
from services.agent.resources.tables import group_agents, groups
from services.common.core.paging import PageOf
from services.common.core.records import columns, record
from services.common.errors import NotFound
from services.common.keyset import Keyset

_KEYSET = Keyset(groups, "group")


class PostgresGroups:
    """`resources.groups.ports.GroupStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = autocommit(engine)

    async def get(self, organization_id: UUID, group_id: UUID) -> Group:
        async with self._reading.connect() as connection:
            return await _get(connection, organization_id, group_id)

    async def list(self, organization_id: UUID, filters: GroupList) -> PageOf[Group]:
        query = _whole().where(groups.c.organization_id == organization_id, *_conditions(filters))
        async with self._reading.connect() as connection:
            page = await _KEYSET.page(connection, query, filters.page, organization_id)
        return page.map(lambda row: record(Group, row._mapping))

    async def count(self, organization_id: UUID) -> int:
        query = select(func.count()).where(groups.c.organization_id == organization_id)
        async with self._reading.connect() as connection:
            return (await connection.execute(query)).scalar_one()

    async def check_agents(self, organization_id: UUID, agent_ids: frozenset[UUID]) -> None:
        async with self._reading.connect() as connection:
            await lock_agents(connection, organization_id, agent_ids)

    async def insert(self, organization_id: UUID, group_id: UUID, user_id: UUID, settings: GroupSettings) -> Group:
        try:
            async with self._engine.begin() as connection:
                await lock_agents(connection, organization_id, settings.agents)
                await insert_group(connection, organization_id, group_id, user_id, settings)
                return await _get(connection, organization_id, group_id)
        except IntegrityError:
            return await self.get(organization_id, group_id)

    async def update(self, organization_id: UUID, user_id: UUID, before: Group, after: Group) -> Group | None:
        statement = (
            update(groups)
            .where(*matches(groups, organization_id=organization_id, id=before.id, updated_at=before.updated_at))
            .values(**columns(after, COLUMNS), last_updated_by_id=user_id, updated_at=func.clock_timestamp())
        )
        members = matches(group_agents, organization_id=organization_id, group_id=before.id)
        async with self._engine.begin() as connection:
            # Agents first, as everywhere: two that lock both get in each other's way otherwise.
            await lock_agents(connection, organization_id, after.agents)
            if not (await connection.execute(statement)).rowcount:
                return None
            await connection.execute(delete(group_agents).where(*members))
            await join(connection, organization_id, before.id, after.agent_ids)
            return await _get(connection, organization_id, before.id)

    async def delete(self, organization_id: UUID, group_id: UUID) -> None:
        async with self._reading.connect() as connection:
            deleted = await connection.execute(
                delete(groups).where(*matches(groups, organization_id=organization_id, id=group_id))
            )
        if not deleted.rowcount:
            raise group_not_found(group_id)


def group_not_found(group_id: UUID) -> NotFound:
    """Returns the error for a group that is not there."""
    return NotFound(f"Group group-{group_id} not found", reason="GROUP_NOT_FOUND")


def _whole() -> Select[Any]:
    return select(groups, members_of(groups))


def _conditions(filters: GroupList) -> list[ColumnElement[bool]]:
    conditions = equal_to(groups, filters, "manager_type", "project_id", "deployment_id")
    if filters.agent_id is not None:
        member = group_agents.c.organization_id == groups.c.organization_id, group_agents.c.group_id == groups.c.id
        conditions.append(exists().where(*member, group_agents.c.agent_id == filters.agent_id).correlate(groups))
    if not filters.show_hidden:
        conditions.append(groups.c.hidden.is_(False))
    return conditions


async def _get(connection: AsyncConnection, organization_id: UUID, group_id: UUID) -> Group:
    row = (
        await connection.execute(_whole().where(*matches(groups, organization_id=organization_id, id=group_id)))
    ).first()
    if row is None:
        raise group_not_found(group_id)
    return record(Group, row._mapping)
