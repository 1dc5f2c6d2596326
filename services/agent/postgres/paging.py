"""Pages by time and id, for lists made with SQLAlchemy."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Row, Select, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.page_tokens import moment_of
from services.common.errors import NotFound
from services.common.paging import Moment, Page, PageOf, cut, moment_token

_LAST_ID = 2**128 - 1
# Of tables, where it is not their name without the s.
_NOUNS = {"identities": "identity"}
# Of ids, where it is not the noun.
_PREFIXES = {"conversation": "conv"}


def reading(engine: AsyncEngine) -> AsyncEngine:
    """The same pool for single statements: without BEGIN and ROLLBACK around each."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


async def bounded(
    connection: AsyncConnection,
    query: Select[Any],
    table: FromClause,
    time: ColumnElement[Any],
    page: Page,
    tenant: UUID,
) -> Select[Any]:
    """`query` (over `table`) restricted to the page, in the order of its scan, with one row more than fits.

    A statement for each cursor. Raises NotFound (<NOUN>_NOT_FOUND), Refused (PAGE_TOKEN_INVALID).
    """
    place, ascending = tuple_(time, table.c.id), page.ascending
    if page.token:
        start = tuple_(*moment_of(page.token))
        query = query.where(place > start if page.scan_ascending else place < start)
    if page.after is not None:
        after = tuple_(*await _moment(connection, table, time, tenant, page.after))
        query = query.where(place > after if ascending else place < after)
    if page.before is not None:
        before = tuple_(*await _moment(connection, table, time, tenant, page.before))
        query = query.where(place < before if ascending else place > before)
    return query.order_by(*order(time, table.c.id, ascending=page.scan_ascending)).limit(page.size + 1)


def shown_as(ids: ColumnElement[UUID], message_id: UUID) -> ColumnElement[bool]:
    """Messages that are shown under an id, the one that has it first by id.

    Calls that wait for the client are shown under the id before that of their message; see `messages.piece_id`.
    """
    return ids.in_((message_id, UUID(int=min(message_id.int + 1, _LAST_ID))))


def order(*columns: Any, ascending: bool) -> list[Any]:
    """Columns to sort by, all in one direction."""
    return [column.asc() if ascending else column.desc() for column in columns]


def page_of(rows: Sequence[Row[Any]], time: str, page: Page) -> PageOf[Row[Any]]:
    """The page in what the scan found; `time` names the column it is ordered by."""
    return cut(rows, page, lambda row: moment_token(Moment(row._mapping[time], row.id)))


async def _moment(
    connection: AsyncConnection, table: FromClause, time: ColumnElement[Any], tenant: UUID, object_id: UUID
) -> Moment:
    query = select(time, table.c.id).where(table.c.organization_id == tenant, table.c.id == object_id)
    row = (await connection.execute(query)).first()
    if row is None:
        noun = _NOUNS.get(table.description) or table.description.removesuffix("s")
        prefix = _PREFIXES.get(noun, noun)
        raise NotFound(f"The cursor {prefix}-{object_id} was not found", reason=f"{noun.upper()}_NOT_FOUND")
    return Moment(*row)
