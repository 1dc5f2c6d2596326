"""Old receipts go, in the background: in small batches, on whichever replicas are there."""

import asyncio
import logging
import random
from datetime import timedelta

from services.tool_runner.executions.ports import Retention

_BATCH = 500
_EVERY_SECONDS = 600.0
_FIRST_SECONDS = 60.0
_BETWEEN_SECONDS = 0.2

_log = logging.getLogger(__name__)


class RetentionSweeper:
    """`days`: how long receipts and files are kept; 0: for ever."""

    def __init__(self, retention: Retention, days: int) -> None:
        self._retention = retention
        self._age = timedelta(days=days) if days else None

    async def run(self) -> None:
        """Sweeps until it is cancelled."""
        await asyncio.sleep(random.uniform(0, _FIRST_SECONDS))
        while True:
            try:
                await self.sweep()
            # A supervisor: a database that is away must not end the sweeping.
            except Exception as error:  # noqa: BLE001
                _log.warning("old receipts were not erased", extra={"problem": type(error).__name__})
            await asyncio.sleep(_EVERY_SECONDS * random.uniform(0.5, 1.5))

    async def sweep(self) -> int:
        """Returns all that is old now; how much went."""
        await self._retention.tidy()
        swept = 0
        while self._age is not None:
            erased = await self._retention.sweep(self._age, _BATCH)
            swept += erased
            if not erased:
                break
            await asyncio.sleep(_BETWEEN_SECONDS)
        return swept
