"""Pages of tools on Postgres: filters, and cursors both ways."""

from uuid import UUID

import asyncpg

from services.common.core.paging import Page, PageOf
from services.tool_runner.core.model import Tool
from services.tool_runner.database import DatabasePool, Where
from services.tool_runner.keyset import Keyset
from services.tool_runner.tools import rows
from services.tool_runner.tools.model import ToolFilter
from services.tool_runner.tools.rows import TOOL_COLUMNS

_KEYSET = Keyset("tool_runner.tools", "tool")


class PostgresToolLists:
    """`ports.Lists`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def tools(self, organization_id: UUID, filters: ToolFilter, page: Page) -> PageOf[Tool]:
        rows_of_page = await _KEYSET.page(self._pool, TOOL_COLUMNS, _where(organization_id, filters), page)
        return rows_of_page.map(rows.tool)

    async def count(self, organization_id: UUID, filters: ToolFilter) -> int:
        where = _where(organization_id, filters)
        return int(
            await self._pool.fetchval(f"SELECT count(*) FROM tool_runner.tools WHERE {where.text()}", *where.parameters)
        )


def _where(organization_id: UUID, filters: ToolFilter) -> Where:
    where = Where(organization_id)
    if filters.name is not None:
        where.add("name = {}", filters.name)
    if filters.names:
        where.add("name = ANY({}::text[])", filters.names)
    if filters.ids:
        where.add("id = ANY({}::uuid[])", filters.ids)
    if filters.types:
        where.add("tool_type = ANY({}::text[])", filters.types)
    if filters.excluded_types:
        where.add("NOT tool_type = ANY({}::text[])", filters.excluded_types)
    if filters.search:
        # strpos: nothing in the words has a meaning, as it would with LIKE.
        matches = (f"strpos(lower({column}), lower({{}}::text)) > 0" for column in ("name", "description"))
        where.add(f"({' OR '.join(matches)})", filters.search, filters.search)
    return where
