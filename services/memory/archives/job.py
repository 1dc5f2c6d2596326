"""Erases what was deleted, in portions."""

import time
from uuid import UUID

from services.memory.core.ports.passages import ArchiveStore
from services.memory.jobs.model import Job, Reschedule

# Then other jobs have a turn.
_SECONDS = 10.0


class ArchiveEraser:
    """Handles jobs whose subject is a deleted archive."""

    def __init__(self, archives: ArchiveStore) -> None:
        self._archives = archives

    async def erase(self, job: Job) -> Reschedule | None:
        """Goes on where the last one stopped; see `ArchiveStore.erase`."""
        end = time.monotonic() + _SECONDS
        while await self._archives.erase(job.organization_id, UUID(job.subject)):
            if time.monotonic() > end:
                return Reschedule(0.0)
        return None
