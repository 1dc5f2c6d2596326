"""Agents counted, and their tags, with SQLAlchemy."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import FromClause, Select, collate, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.postgres.paging import reading
from services.agent.postgres.tables import agents
from services.agent.resources.agents.ports import AgentList
from services.agent.resources.agents.statements import filters, present
from services.common.paging import TagPage


class AgentCounts:
    """The part of `resources.agents.ports.AgentStore` that reads no agent whole."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._counting = reading(engine)

    async def count(self, organization_id: UUID, wanted: AgentList) -> int:
        found = present(organization_id).where(*filters(wanted)).with_only_columns(func.count())
        async with self._counting.connect() as connection:
            return int((await connection.execute(found)).scalar_one())

    async def tags(self, organization_id: UUID, wanted: TagPage) -> Sequence[str]:
        tags = select(func.unnest(agents.c.tags).label("tag")).where(
            agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None)
        )
        async with self._counting.connect() as connection:
            return wanted.in_order((await connection.scalars(_tags(tags.subquery(), wanted))).all())


def _tags(every: FromClause, wanted: TagPage) -> Select[str]:
    """The page in a column `tag`, each tag once, in the order of the scan."""
    name = collate(every.c.tag, "C")
    query = select(name.label("tag")).distinct()
    if wanted.low is not None:
        query = query.where(name > wanted.low)
    if wanted.high is not None:
        query = query.where(name < wanted.high)
    if wanted.query_text:
        query = query.where(every.c.tag.icontains(wanted.query_text, autoescape=True))
    return query.order_by(name if wanted.scan_ascending else name.desc()).limit(wanted.size)
