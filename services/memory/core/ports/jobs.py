"""The queue of jobs."""

from typing import Protocol
from uuid import UUID

from services.memory.jobs.model import Job, Reschedule


class JobStore(Protocol):
    """The queue."""

    async def add(self, organization_id: UUID, kind: str, subject: str, *, seconds: float = 0.0) -> None:
        """Asks for work, `seconds` from now. What is asked for already is not there twice; what runs, runs again."""

    async def claim(self, worker_id: UUID) -> Job | None:
        """Returns a job that nobody has, for LEASE_SECONDS; None where there is none."""

    async def renew(self, job: Job, worker_id: UUID) -> bool:
        """Keeps it for LEASE_SECONDS from now; False when another has it."""

    async def finish(self, job: Job, worker_id: UUID) -> None:
        """Removes it, unless it was asked for again meanwhile."""

    async def postpone(self, job: Job, worker_id: UUID, later: Reschedule) -> None:
        """Gives it back, for later."""
