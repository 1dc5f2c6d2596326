"""Pages of tools, with SQLAlchemy: filters and cursors both ways."""

from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.core.paging import Page, PageOf
from services.common.keyset import Keyset
from services.tool_runner.core.model import Tool
from services.tool_runner.tools import rows
from services.tool_runner.tools.model import ToolFilter
from services.tool_runner.tools.table import tools

# The words are for searches alone.
_COLUMNS = [column for column in tools.c if column.name != "words"]
_KEYSET = Keyset(tools, "tool", sentence="Tool {} not found")


class SqlLists:
    """`ports.Lists`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def tools(self, organization_id: UUID, filters: ToolFilter, page: Page) -> PageOf[Tool]:
        query = select(*_COLUMNS).where(tools.c.organization_id == organization_id, *_filters(filters))
        async with self._engine.connect() as connection:
            page_rows = await _KEYSET.page(connection, query, page, organization_id)
        return PageOf(tuple(rows.tool(row._asdict()) for row in page_rows.items), page_rows.next_token)

    async def count(self, organization_id: UUID, filters: ToolFilter) -> int:
        query = select(func.count()).where(tools.c.organization_id == organization_id, *_filters(filters))
        async with self._engine.connect() as connection:
            return (await connection.execute(query)).scalar_one()

    async def close(self) -> None:
        await self._engine.dispose()


def _filters(filters: ToolFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.name is not None:
        conditions.append(tools.c.name == filters.name)
    if filters.names:
        conditions.append(tools.c.name.in_(filters.names))
    if filters.ids:
        conditions.append(tools.c.id.in_(filters.ids))
    if filters.types:
        conditions.append(tools.c.tool_type.in_(filters.types))
    if filters.excluded_types:
        conditions.append(tools.c.tool_type.not_in(filters.excluded_types))
    if filters.search:
        texts = (tools.c.name, tools.c.description)
        conditions.append(or_(*(column.icontains(filters.search, autoescape=True) for column in texts)))
    return conditions
