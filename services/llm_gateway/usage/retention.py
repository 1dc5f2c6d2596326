"""The end of usage rows: single calls are forgotten after some days, the sums by the hour are kept."""

import asyncio
import logging
import random
from datetime import UTC, datetime, timedelta

from services.llm_gateway.usage.model import StoreRefused, StoreUnavailable, UsageReports

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 3_600.0
# Between two parts, so that the database has time for others.
_REST_SECONDS = 0.1


class Retention:
    """Deletes rows older than `days`, a part at a time."""

    def __init__(self, reports: UsageReports, days: int) -> None:
        self._reports = reports
        self._days = days

    async def run_forever(self) -> None:
        """The background task. Replicas may do it at the same time."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS * random.uniform(0.5, 1.0))
            try:
                await self.run_once()
            except (StoreUnavailable, StoreRefused) as error:
                logger.warning("old usage cannot be deleted now: %s", error)

    async def run_once(self) -> int:
        """Deletes all rows that are too old; returns how many. Raises StoreUnavailable, StoreRefused."""
        total = 0
        while gone := await self._reports.forget_before(datetime.now(UTC) - timedelta(days=self._days)):
            total += gone
            await asyncio.sleep(_REST_SECONDS)
        return total
