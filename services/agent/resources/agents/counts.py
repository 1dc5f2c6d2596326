"""Agents counted, and their tags, with SQLAlchemy."""

import json
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Text, cast, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.resources.agents.ports import AgentList
from services.agent.resources.agents.statements import conditions_of, present
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import agents
from services.common import keyset
from services.common.core.paging import PageBy


class AgentCounts:
    """The part of `resources.agents.ports.AgentStore` that reads no agent whole."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._counting = autocommit(engine)

    async def count(self, organization_id: UUID, filters: AgentList) -> int:
        query = present(organization_id).where(*conditions_of(filters)).with_only_columns(func.count())
        async with self._counting.connect() as connection:
            return int((await connection.execute(query)).scalar_one())

    async def with_rules_of(self, organization_id: UUID, tool_id: UUID, name: str) -> Sequence[UUID]:
        holds = func.strpos(cast(agents.c.tool_rules, Text), json.dumps(name)) > 0
        query = present(organization_id, agents.c.id).where(agents.c.tool_ids.contains([tool_id]), holds)
        async with self._counting.connect() as connection:
            found: Sequence[UUID] = (await connection.execute(query)).scalars().all()
            return found

    async def tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        tags = select(func.unnest(agents.c.tags).label("tag")).where(
            agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None)
        )
        async with self._counting.connect() as connection:
            return await keyset.values(connection, tags.subquery().c.tag, page, query_text)
