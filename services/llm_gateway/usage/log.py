"""The account of what calls cost, written in the background: no model call waits for the database.

Rows are gathered and written at most FLUSH_SECONDS later, and at the drain. While the database is away up to
MOST_WAITING rows wait; beyond that the oldest are dropped and the log says how many.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from services.llm_gateway.usage.model import StoreRefused, StoreUnavailable, UsageRow, UsageStore

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
MOST_WAITING = 50_000
_BATCH = 500


class UsageLog:
    """The log of usage: it takes rows at once and writes them later."""

    def __init__(self, store: UsageStore) -> None:
        self._store = store
        self._waiting: deque[UsageRow] = deque()
        self._dropped = 0
        self._writing = asyncio.Lock()

    @property
    def waiting(self) -> Iterable[UsageRow]:
        """Returns the rows that are not written; rows that are being written are in neither place: see `still`."""
        return self._waiting

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Keeps rows from being written inside: a row either waits or is in the store."""
        async with self._writing:
            yield

    def add(self, row: UsageRow) -> None:
        """Adds the row of a call."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(row)

    async def write_forever(self) -> None:
        """The background task."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Writes the rows that wait, as far as the database takes them."""
        while self._waiting:
            async with self._writing:
                if not await self._write_batch():
                    return

    async def _write_batch(self) -> bool:
        """Writes a batch; returns whether to go on with the next. A row that the database refuses does not take others
        along.
        """
        parts = deque([[self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]])
        if not parts[0]:  # another flush was first
            return False
        while parts:
            part = parts[0]
            try:
                await self._store.write(part)
            except StoreUnavailable as error:
                self._put_back(parts)
                logger.warning("usage cannot be written now: %s; %d rows wait", error, len(self._waiting))
                return False
            except StoreRefused as error:
                if len(part) > 1:
                    parts[0] = part[len(part) // 2 :]
                    parts.appendleft(part[: len(part) // 2])
                    continue
                logger.error("a usage row of %s is lost, because the database refuses it: %s", part[0].handle, error)
            except asyncio.CancelledError:
                # Whether they were written is not known; the flush at the drain offers them again.
                self._put_back(parts)
                raise
            parts.popleft()
        if self._dropped:
            logger.error("%d usage rows were lost while the database was away", self._dropped)
            self._dropped = 0
        return True

    def _put_back(self, parts: Iterable[list[UsageRow]]) -> None:
        self._waiting.extendleft(reversed([row for part in parts for row in part]))
