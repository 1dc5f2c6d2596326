"""Lists whose SQLAlchemy (24 MB) is imported when the first one is asked for: a runner of tools does without."""

from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.tool_runner.core.model import Tool
from services.tool_runner.tools.model import ToolFilter
from services.tool_runner.tools.ports import Lists


class LateLists:
    """`ports.Lists`, made on first use."""

    def __init__(self, url: str, *, pgbouncer: bool = False) -> None:
        self._url = url
        self._pgbouncer = pgbouncer
        self._lists: Lists | None = None

    async def tools(self, organization_id: UUID, filters: ToolFilter, page: Page) -> PageOf[Tool]:
        return await self._lists_of().tools(organization_id, filters, page)

    async def count(self, organization_id: UUID, filters: ToolFilter) -> int:
        return await self._lists_of().count(organization_id, filters)

    def _lists_of(self) -> Lists:
        if self._lists is None:
            from services.common.engine import make_engine  # noqa: PLC0415
            from services.tool_runner.tools.list_store import SqlLists  # noqa: PLC0415

            self._lists = SqlLists(make_engine(self._url, size=2, pgbouncer=self._pgbouncer))
        return self._lists

    async def close(self) -> None:
        if self._lists is not None:
            await self._lists.close()
