"""Rows of groups, written in a transaction of the caller's."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from services.agent.resources.groups.model import GroupSettings
from services.agent.resources.tables import group_agents, groups
from services.common.core.records import columns, names_in

COLUMNS = names_in(GroupSettings, groups.c.keys())


async def insert_group(
    connection: AsyncConnection, organization_id: UUID, group_id: UUID, user_id: UUID, settings: GroupSettings
) -> None:
    """Stores a group with its members. Raises IntegrityError where there is one with the id."""
    values = columns(settings, COLUMNS) | {"organization_id": organization_id, "id": group_id}
    values |= {"created_by_id": user_id, "last_updated_by_id": user_id}
    await connection.execute(insert(groups).values(values))
    await join(connection, organization_id, group_id, settings.agent_ids)


async def join(connection: AsyncConnection, organization_id: UUID, group_id: UUID, agent_ids: Sequence[UUID]) -> None:
    """Makes the agents the members of a group that has none."""
    rows = [
        {"organization_id": organization_id, "group_id": group_id, "agent_id": agent_id, "position": place}
        for place, agent_id in enumerate(agent_ids)
    ]
    if rows:
        await connection.execute(insert(group_agents), rows)
