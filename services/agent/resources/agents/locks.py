"""Agents that something else is about to name."""

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.agent.resources.agents.rows import agent_not_found
from services.agent.resources.tables import agents


async def lock_agents(connection: AsyncConnection, organization_id: UUID, agent_ids: Iterable[UUID]) -> None:
    """Keeps the agents from being deleted before this transaction ends. Raises NotFound (AGENT_NOT_FOUND)."""
    ids = tuple(agent_ids)
    if not ids:
        return
    # In one order, whatever the request's.
    query = (
        select(agents.c.id)
        .where(agents.c.organization_id == organization_id, agents.c.id.in_(ids), agents.c.deleted_at.is_(None))
        .order_by(agents.c.id)
        .with_for_update(read=True)
    )
    present = set((await connection.execute(query)).scalars())
    for agent_id in ids:
        if agent_id not in present:
            raise agent_not_found(agent_id)
