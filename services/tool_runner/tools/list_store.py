"""Pages of tools, with SQLAlchemy: filters and cursors both ways."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.paging import Moment, Page, PageOf, cut, moment_token
from services.tool_runner.core.model import Tool
from services.tool_runner.errors import no_such_tool
from services.tool_runner.tools import rows
from services.tool_runner.tools.model import ToolFilter, moment_of
from services.tool_runner.tools.table import tools

# The words are for searches alone.
_COLUMNS = [column for column in tools.c if column.name != "words"]
_PLACE = tuple_(tools.c.created_at, tools.c.id)


class SqlLists:
    """`ports.Lists`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def tools(self, organization_id: UUID, wanted: ToolFilter, page: Page) -> PageOf[Tool]:
        query = select(*_COLUMNS).where(tools.c.organization_id == organization_id, *_filters(wanted))
        async with self._engine.connect() as connection:
            query = query.where(*await _bounds(connection, organization_id, page))
            order = (tools.c.created_at, tools.c.id)
            query = query.order_by(*order if page.scan_ascending else (column.desc() for column in order))
            found = (await connection.execute(query.limit(page.size + 1))).all()
        one = cut(found, page, lambda row: moment_token(Moment(row.created_at, row.id)))
        return PageOf(tuple(rows.tool(row._asdict()) for row in one.items), one.next_token)

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


async def _bounds(connection: AsyncConnection, organization_id: UUID, page: Page) -> list[ColumnElement[bool]]:
    """Returns the bounds of the page as conditions. A token goes on from where its page was."""
    start = moment_of(page.token) if page.token else None
    end = start if page.backwards else None
    if page.after is not None:
        start = start or await _moment(connection, organization_id, page.after)
    if page.before is not None:
        end = end or await _moment(connection, organization_id, page.before)
    bounds: list[ColumnElement[bool]] = []
    if start is not None and not page.backwards:
        bounds.append(_at(start) < _PLACE if page.ascending else _at(start) > _PLACE)
    if end is not None:
        bounds.append(_at(end) > _PLACE if page.ascending else _at(end) < _PLACE)
    return bounds


def _at(moment: Moment) -> ColumnElement[Any]:
    return tuple_(*moment)


async def _moment(connection: AsyncConnection, organization_id: UUID, tool_id: UUID) -> Moment:
    query = select(tools.c.created_at, tools.c.id).where(
        tools.c.organization_id == organization_id, tools.c.id == tool_id
    )
    row = (await connection.execute(query)).first()
    if row is None:
        raise no_such_tool(tool_id)
    return Moment(row.created_at, row.id)
