"""Pages by keyset with the driver alone: places in the order of a list instead of offsets.

The same rule as `services/common/keyset.py`; the first list of a fresh process has no SQLAlchemy to wait for.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.common.core.paging import Moment, Page, PageOf, cut, moment_of, moment_token
from services.common.errors import cursor_not_found
from services.tool_runner.database import DatabasePool, Where


@dataclass(frozen=True, slots=True)
class Keyset:
    """The order of a table's rows: by created_at, then by id. `prefix`: of their ids."""

    table: str
    prefix: str

    async def page(self, pool: DatabasePool, columns: str, where: Where, page: Page) -> PageOf[Any]:
        """Returns the rows that the conditions name on one page; `columns` has created_at and id.

        Raises NotFound (CURSOR_NOT_FOUND), Refused (PAGE_TOKEN_INVALID).
        """
        await self._bound(pool, where, page)
        direction = "ASC" if page.scan_ascending else "DESC"
        scanned = await pool.fetch(
            f"SELECT {columns} FROM {self.table} WHERE {where.text()}"
            f" ORDER BY created_at {direction}, id {direction} LIMIT {page.size + 1:d}",
            *where.parameters,
        )
        return cut(scanned, page, lambda row: moment_token(Moment(row["created_at"], row["id"])))

    async def _bound(self, pool: DatabasePool, where: Where, page: Page) -> None:
        """Adds where the page begins and ends."""
        organization_id = where.parameters[0]
        token = moment_of(page.token) if page.token else None
        later, earlier = (">", "<") if page.ascending else ("<", ">")
        if page.after is not None:
            _add_place(where, later, token or await self._moment(pool, organization_id, "after", page.after))
        elif token is not None and not page.backwards:
            _add_place(where, later, token)
        if page.before is not None:
            on_way_back = token if page.backwards else None
            _add_place(where, earlier, on_way_back or await self._moment(pool, organization_id, "before", page.before))

    async def _moment(self, pool: DatabasePool, organization_id: UUID, field: str, row_id: UUID) -> Moment:
        place = f"SELECT created_at, id FROM {self.table} WHERE organization_id = $1 AND id = $2"
        row = await pool.fetchrow(place, organization_id, row_id)
        if row is None:
            raise cursor_not_found(field, f"{self.prefix}-{row_id}")
        return Moment(row["created_at"], row["id"])


def _add_place(where: Where, comparison: str, place: Moment) -> None:
    where.add(f"(created_at, id) {comparison} ({{}}::timestamptz, {{}}::uuid)", *place)
