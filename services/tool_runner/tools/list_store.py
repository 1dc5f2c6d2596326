"""Pages of tools, with SQLAlchemy: filters and cursors both ways."""

from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.keyset import Keyset
from services.common.paging import Page, PageOf
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

    async def tools(self, organization_id: UUID, wanted: ToolFilter, page: Page) -> PageOf[Tool]:
        query = select(*_COLUMNS).where(tools.c.organization_id == organization_id, *_filters(wanted))
        async with self._engine.connect() as connection:
            found = await _KEYSET.page(connection, query, page, organization_id)
        return PageOf(tuple(rows.tool(row._asdict()) for row in found.items), found.next_token)

    async def count(self, organization_id: UUID, wanted: ToolFilter) -> int:
        query = select(func.count()).where(tools.c.organization_id == organization_id, *_filters(wanted))
        async with self._engine.connect() as connection:
            return (await connection.execute(query)).scalar_one()

    async def close(self) -> None:
        await self._engine.dispose()


def _filters(wanted: ToolFilter) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = []
    if wanted.name is not None:
        filters.append(tools.c.name == wanted.name)
    if wanted.names:
        filters.append(tools.c.name.in_(wanted.names))
    if wanted.ids:
        filters.append(tools.c.id.in_(wanted.ids))
    if wanted.types:
        filters.append(tools.c.tool_type.in_(wanted.types))
    if wanted.excluded_types:
        filters.append(tools.c.tool_type.not_in(wanted.excluded_types))
    if wanted.search:
        texts = (tools.c.name, tools.c.description)
        filters.append(or_(*(column.icontains(wanted.search, autoescape=True) for column in texts)))
    return filters
