"""The web, whose HTTP (8 MB with all that it brings) is imported when a tool first asks for it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.lazy_imports import import_lazily
from services.tool_runner.web.engines.engine import Engine, Hit, Query
from services.tool_runner.web.rules import SearchSettings

if TYPE_CHECKING:
    from services.tool_runner.web.fetch import Fetcher, Page
    from services.tool_runner.web.search import WebSearch


class Web:
    """Search and pages. `allow_private`: LOCI_ALLOW_PRIVATE_URLS, for pages."""

    def __init__(self, settings: SearchSettings, *, allow_private: bool) -> None:
        self._settings = settings
        self._allow_private = allow_private
        self._search: WebSearch | None = None
        self._fetcher: Fetcher | None = None

    async def search(self, query: Query, environment: Mapping[str, str]) -> tuple[Engine, list[Hit]]:
        """See `WebSearch.search`."""
        if self._search is None:
            searching = await import_lazily("services.tool_runner.web.search")
            self._search = self._search or searching.WebSearch(self._settings)
        return await self._search.search(query, environment)

    async def fetch(self, url: str) -> "Page":
        """See `Fetcher.fetch`."""
        if self._fetcher is None:
            fetching = await import_lazily("services.tool_runner.web.fetch")
            self._fetcher = self._fetcher or fetching.Fetcher(allow_private=self._allow_private)
        return await self._fetcher.fetch(url)

    async def close(self) -> None:
        """Closes connections."""
        for part in (self._search, self._fetcher):
            if part is not None:
                await part.close()
