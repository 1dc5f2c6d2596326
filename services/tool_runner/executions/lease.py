"""This replica's lease: beaten while it runs calls, so that others wait for it instead of taking over.

It costs nothing while nothing runs: a lease that lapses then says nothing about any receipt.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from services.common.errors import Unavailable
from services.common.ids import uuid7
from services.tool_runner.executions.ports import ReceiptStore

BEAT_SECONDS = 0.5
# A beat that takes longer is given up, and its connection with it.
BEAT_PATIENCE = 5.0

_log = logging.getLogger(__name__)


class Lease:
    """`owner_id` names this replica in receipts. `on_beat` is awaited after each beat."""

    def __init__(self, store: ReceiptStore, on_beat: Callable[[], Awaitable[None]]) -> None:
        self.owner_id: UUID = uuid7()
        self._store = store
        self._on_beat = on_beat
        self._holders = 0
        self._beaten_at = 0.0
        self._begun = False
        self._beating: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keeps the lease alive in this block; raises where the database cannot be told so."""
        self._holders += 1
        try:
            if time.monotonic() - self._beaten_at > BEAT_SECONDS:
                await self._beat()
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._keep_beating())
            yield
        finally:
            self._holders -= 1

    async def close(self) -> None:
        """Ends it. What still names this owner is then known to be abandoned."""
        if self._beating:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        if self._begun:
            with contextlib.suppress(Unavailable):
                await self._store.retire(self.owner_id)

    async def _beat(self) -> None:
        began = time.monotonic()
        await self._store.beat(self.owner_id)
        self._beaten_at, self._begun = began, True

    async def _keep_beating(self) -> None:
        while self._holders:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._beat()
                await self._on_beat()
            # A supervisor: a database that is away for a moment must not end the beating.
            except Exception as error:  # noqa: BLE001
                _log.warning("the lease was not renewed", extra={"problem": type(error).__name__})
