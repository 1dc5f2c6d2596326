"""The account of what calls cost, written in the background: no model call waits for the database.

Rows are gathered and written at most FLUSH_SECONDS later, and at the drain. While the database is away up to
MOST_WAITING rows wait; beyond that the oldest are dropped and the log says how many.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from services.llm_gateway.ports import StoreRefused, StoreUnavailable, UsageRow, UsageStore

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
MOST_WAITING = 50_000
_BATCH = 500


class UsageLog:
    """Takes rows at once and writes them later."""

    def __init__(self, store: UsageStore) -> None:
        self._store = store
        self._waiting: deque[UsageRow] = deque()
        self._dropped = 0
        self._writing = asyncio.Lock()

    @property
    def waiting(self) -> Iterable[UsageRow]:
        """What is not written; while rows are being written, those are in neither place: see `still`."""
        return self._waiting

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Inside, nothing is being written: a row either waits or is in the store."""
        async with self._writing:
            yield

    def add(self, row: UsageRow) -> None:
        """Account for one call."""
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
        """Write what waits, as far as the database takes it."""
        while self._waiting:
            async with self._writing:
                if not await self._write_batch():
                    return

    async def _write_batch(self) -> bool:
        """Whether to go on with the next."""
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        if not batch:  # another flush was first
            return False
        try:
            await self._store.write(batch)
        except StoreUnavailable as error:
            self._waiting.extendleft(reversed(batch))
            logger.warning("usage cannot be written now: %s; %d rows wait", error, len(self._waiting))
            return False
        except StoreRefused as error:
            logger.error("%d usage rows are lost, because the database refuses them: %s", len(batch), error)
        except asyncio.CancelledError:
            # Whether they were written is not known; the flush at the drain offers them again.
            self._waiting.extendleft(reversed(batch))
            raise
        if self._dropped:
            logger.error("%d usage rows were lost while the database was away", self._dropped)
            self._dropped = 0
        return True
