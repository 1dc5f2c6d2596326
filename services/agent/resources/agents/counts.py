"""Agents counted, and their tags, with SQLAlchemy."""

import json
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Text, cast, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.core.rules.rule_json import rules_from_json
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.resources.agents.ports import AgentList
from services.agent.resources.agents.statements import conditions_of, present
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import agents, runs
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

    async def rules_of_runs(self, organization_id: UUID, run_ids: Sequence[UUID]) -> Sequence[ToolRule]:
        of_runs = select(runs.c.agent_id).where(runs.c.organization_id == organization_id, runs.c.id.in_(run_ids))
        query = select(agents.c.tool_rules).where(agents.c.organization_id == organization_id, agents.c.id.in_(of_runs))
        async with self._counting.connect() as connection:
            return [rule for rules in (await connection.execute(query)).scalars() for rule in rules_from_json(rules)]

    async def tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        tags = select(func.unnest(agents.c.tags).label("tag")).where(
            agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None)
        )
        async with self._counting.connect() as connection:
            return await keyset.values(connection, tags.subquery().c.tag, page, query_text)
