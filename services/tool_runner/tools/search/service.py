"""Search over tools."""

import asyncio
import logging
import time
from collections.abc import Sequence
from uuid import UUID

from services.common.context import CallContext
from services.common.errors import LociError
from services.tool_runner.core.model import Tool
from services.tool_runner.tools.search.model import Mode, Place, ToolQuery, check_query, fuse, unit_vector
from services.tool_runner.tools.search.ports import Embedder, Rankings
from services.tool_runner.tools.search.vectors import VectorFiller

# A query is short; whoever searches waits for its vector.
EMBED_SECONDS = 2.0
# What was written just now may get its vectors meanwhile.
_FILL_SECONDS = 1.0
# After a model did not answer, so long nobody waits for it.
_REST_SECONDS = 5.0

_log = logging.getLogger(__name__)


class ToolSearch:
    """Finds tools. Without an embedder that answers, by words alone."""

    def __init__(self, rankings: Rankings, embedder: Embedder | None, filler: VectorFiller | None, handle: str) -> None:
        self._rankings = rankings
        self._embedder = embedder
        self._filler = filler
        self._handle = handle
        self._rests_until = 0.0

    def hear(self, caller: CallContext) -> None:
        """Notes that the caller's tenant has a new tool, or a changed one."""
        if self._filler is not None:
            self._filler.hear(caller)

    async def close(self) -> None:
        """Gives up what is being done in the background. Idempotent."""
        if self._filler is not None:
            await self._filler.close()

    async def find(self, caller: CallContext, query: ToolQuery) -> tuple[list[tuple[Tool, Place]], Mode]:
        """Returns the best tools, and how they were found. Raises Refused (TOOL_SEARCH_INVALID)."""
        query, tenant = check_query(query), caller.organization_id
        if not query.text:
            newest = await self._rankings.newest(tenant, query)
            return await self._ranked(tenant, [Place(tool_id, 0.0) for tool_id in newest]), Mode.TEXT
        by_words, by_vector = await asyncio.gather(
            self._rankings.by_words(tenant, query), self._by_vector(caller, query)
        )
        if by_vector is None:
            mode, places = Mode.TEXT, fuse(by_words, None)
        else:
            mode, places = query.mode, fuse(None if query.mode is Mode.VECTOR else by_words, by_vector)
        return await self._ranked(tenant, places[: query.limit]), mode

    async def _ranked(self, tenant: UUID, places: Sequence[Place]) -> list[tuple[Tool, Place]]:
        tools = {tool.id: tool for tool in await self._rankings.tools(tenant, [place.tool_id for place in places])}
        return [(tools[place.tool_id], place) for place in places if place.tool_id in tools]

    async def _by_vector(self, caller: CallContext, query: ToolQuery) -> list[UUID] | None:
        """Returns None where they were not asked for, or no model answered in time."""
        if self._embedder is None or query.mode is Mode.TEXT or time.monotonic() < self._rests_until:
            return None
        filled = asyncio.create_task(self._fill(caller))
        try:
            async with asyncio.timeout(EMBED_SECONDS):
                [values] = await self._embedder.embed(self._handle, [query.text], EMBED_SECONDS)
        except (LociError, TimeoutError) as error:
            self._rests_until = time.monotonic() + _REST_SECONDS
            _log.warning("%s made no vector of a query: %s", self._handle, error or "it took too long")
            filled.cancel()
            return None
        await filled
        vector = unit_vector(values)
        return (
            None
            if vector is None
            else await self._rankings.by_vector(caller.organization_id, self._handle, vector, query)
        )

    async def _fill(self, caller: CallContext) -> None:
        if self._filler is not None:
            self._filler.hear(caller)
            await self._filler.caught_up(caller.organization_id, _FILL_SECONDS)
