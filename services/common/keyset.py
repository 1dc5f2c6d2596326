"""Pages by keyset, for lists made with SQLAlchemy: places in the list's order instead of offsets.

A list is ordered by a time, then by id. A cursor is an object's id; its place is looked up. A token holds the place
itself, so that it works when the object is gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Row, Select, collate, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.core.paging import Moment, Page, PageBy, PageOf, cut, moment_of, moment_token
from services.common.errors import cursor_not_found


@dataclass(frozen=True, slots=True, eq=False)
class Keyset:
    """The order of a list: by `time` (default: the table's created_at), then by id. `prefix`: of ids."""

    table: FromClause
    prefix: str
    time: ColumnElement[Any] | None = None

    @property
    def times(self) -> ColumnElement[Any]:
        """Returns the column that the list is ordered by."""
        return self.table.c.created_at if self.time is None else self.time

    async def page(
        self, connection: AsyncConnection, query: Select[Any], page: Page, organization_id: UUID | None
    ) -> PageOf[Row[Any]]:
        """Returns the rows of `query` on one page; `query` selects the id and the time. Raises as `bounds`.

        organization_id: the tenant whose objects may be cursors; None: of all tenants.
        """
        query = self.order_by_scan(query.where(*await self.bounds(connection, page, organization_id)), page)
        return self.cut((await connection.execute(query)).all(), page)

    async def bounds(
        self, connection: AsyncConnection, page: Page, organization_id: UUID | None, *within: ColumnElement[bool]
    ) -> list[ColumnElement[bool]]:
        """Returns conditions for where the page begins and ends; cursors are looked for `within` some.

        A token goes on from where its page was. Raises NotFound (CURSOR_NOT_FOUND), Refused (PAGE_TOKEN_INVALID).
        """
        start = moment_of(page.token) if page.token else None
        end = start if page.backwards else None
        if page.after is not None:
            start = start or await self._moment(connection, "after", page.after, organization_id, within)
        if page.before is not None:
            end = end or await self._moment(connection, "before", page.before, organization_id, within)
        place, bounds = tuple_(self.times, self.table.c.id), []
        if start is not None and not page.backwards:
            bounds.append(place > tuple_(*start) if page.ascending else place < tuple_(*start))
        if end is not None:
            bounds.append(place < tuple_(*end) if page.ascending else place > tuple_(*end))
        return bounds

    def order_by_scan(self, query: Select[Any], page: Page) -> Select[Any]:
        """Returns the query in the order of the page's scan, with one row more than fits."""
        return order_by_scan(query, page, self.times, self.table.c.id)

    def cut(self, rows: Sequence[Row[Any]], page: Page, time: str = "") -> PageOf[Row[Any]]:
        """Returns the page of what an `order_by_scan` query found; `time` is the time's name in the rows."""
        name = time or self.times.name
        return cut(rows, page, lambda row: moment_token(Moment(row._mapping[name], row.id)))

    async def _moment(
        self,
        connection: AsyncConnection,
        field: str,
        object_id: UUID,
        organization_id: UUID | None,
        within: Sequence[ColumnElement[bool]],
    ) -> Moment:
        columns = self.table.c
        own = [columns.id == object_id]
        if organization_id is not None:
            own.append(columns.organization_id == organization_id)
        row = (await connection.execute(select(self.times, columns.id).where(*own, *within).limit(1))).first()
        if row is None:
            raise cursor_not_found(field, f"{self.prefix}-{object_id}")
        return Moment(*row)


def order_by_scan(query: Select[Any], page: PageBy[Any], *columns: ColumnElement[Any]) -> Select[Any]:
    """Returns the query in the order of the page's scan by these columns, with one row more than fits."""
    return query.order_by(*sort_columns(*columns, ascending=page.scan_ascending)).limit(page.size + 1)


def sort_columns(*columns: Any, ascending: bool) -> list[Any]:
    """Returns columns to sort by, all in one direction."""
    return [column.asc() if ascending else column.desc() for column in columns]


async def values(
    connection: AsyncConnection, column: ColumnElement[str], page: PageBy[str], query_text: str = ""
) -> tuple[str, ...]:
    """Returns one page of the different values of a column, by code points.

    `query_text`: only values that hold it, without regard to case.
    """
    value = collate(column, "C")
    query = select(value).distinct()
    low, high = (page.after, page.before) if page.ascending else (page.before, page.after)
    if low is not None:
        query = query.where(value > low)
    if high is not None:
        query = query.where(value < high)
    if query_text:
        query = query.where(column.icontains(query_text, autoescape=True))
    query = query.order_by(*sort_columns(value, ascending=page.scan_ascending)).limit(page.size)
    rows = (await connection.scalars(query)).all()
    return tuple(reversed(rows)) if page.backwards else tuple(rows)
