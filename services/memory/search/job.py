"""Takes samples of the words of large archives; see core/ranking/word_samples.py."""

from uuid import UUID

from services.memory.core.ports.search import SampleStore
from services.memory.jobs.model import Job


class WordSampler:
    """Handles jobs whose subject is an archive, or the tenant."""

    def __init__(self, samples: SampleStore) -> None:
        self._samples = samples

    async def sample(self, job: Job) -> None:
        """See `SampleStore.take`."""
        await self._samples.take(job.organization_id, UUID(job.subject))
