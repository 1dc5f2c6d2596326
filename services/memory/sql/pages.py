"""Pages of lists in the order of creation, with SQLAlchemy: cursors both ways, and tokens."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Row, Select, Table, case, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.errors import NotFound
from services.common.paging import Moment, Page, PageOf, cut, moment_token
from services.memory.core.paging import moment_of
from services.memory.sql.rows import MOST_BYTES


async def page_of(
    connection: AsyncConnection,
    query: Select[Any],
    table: Table,
    organization_id: UUID,
    page: Page,
    noun: str,
) -> PageOf[Row[Any]]:
    """The rows of `query` on one page. Raises NotFound (<noun>_NOT_FOUND) for a cursor that does not exist."""
    query = query.where(*await bounds(connection, table, organization_id, page, noun))
    query = ordered(query, table, page)
    if "value" in query.selected_columns:
        values = with_values(query)
        query = ordered(select(values), values, page)
    return cut_rows((await connection.execute(query)).all(), page)


async def bounds(
    connection: AsyncConnection,
    table: Table,
    organization_id: UUID,
    page: Page,
    noun: str,
    *within: ColumnElement[bool],
) -> list[ColumnElement[bool]]:
    """Which rows of `table` are on the page or beyond it; `within`: where cursors are looked for.

    Raises NotFound as `page_of`, Refused (PAGE_TOKEN_INVALID).
    """
    place = tuple_(table.c.created_at, table.c.id)
    conditions = []
    start = moment_of(page.token) if page.token else None
    if page.after is not None:
        start = start or await _moment(connection, table, organization_id, page.after, noun, within)
    if page.before is not None:
        end = start if start and page.backwards else None
        end = end or await _moment(connection, table, organization_id, page.before, noun, within)
        conditions.append(place < _at(end) if page.ascending else place > _at(end))
    if start is not None and not page.backwards:
        conditions.append(place > _at(start) if page.ascending else place < _at(start))
    return conditions


def ordered(query: Select[Any], table: FromClause, page: Page) -> Select[Any]:
    """The query as the page is scanned, with one row more than fits."""
    columns = table.c.created_at, table.c.id
    return query.order_by(*(column if page.scan_ascending else column.desc() for column in columns)).limit(
        page.size + 1
    )


def with_values(query: Select[Any]) -> FromClause:
    """The rows of a page, whose column `value` stays in the database where all are more than an answer holds."""
    page = query.subquery("whole")
    fit = func.sum(func.octet_length(page.c.value)).over() <= MOST_BYTES
    others = (column for column in page.c if column.name != "value")
    return select(*others, case((fit, page.c.value)).label("value")).subquery("page")


def cut_rows(rows: Sequence[Row[Any]], page: Page) -> PageOf[Row[Any]]:
    """The page of what an `ordered` query found."""
    return cut(rows, page, lambda row: moment_token(Moment(row.created_at, row.id)))


def _at(moment: Moment) -> ColumnElement[Any]:
    return tuple_(*moment)


async def _moment(
    connection: AsyncConnection,
    table: Table,
    organization_id: UUID,
    object_id: UUID,
    noun: str,
    within: Sequence[ColumnElement[bool]],
) -> Moment:
    query = select(table.c.created_at, table.c.id).where(
        table.c.organization_id == organization_id, table.c.id == object_id, *within
    )
    row = (await connection.execute(query.limit(1))).first()
    if row is None:
        public = f"{noun.lower()}-{object_id}"
        raise NotFound(f"The cursor {public} was not found", reason=f"{noun}_NOT_FOUND")
    return Moment(row.created_at, row.id)
