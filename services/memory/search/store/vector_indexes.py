"""The indexes of passages' vectors: what is known of them, and the job that keeps them."""

import asyncio
import math
import time
from uuid import UUID

import asyncpg

from services.common.vector_indexes import LEAST_VECTORS, IndexState, VectorIndex, read_state, tend
from services.memory.archives.model import EmbeddingModel
from services.memory.jobs.model import Job, Reschedule
from services.memory.jobs.store import add_job

INDEX_JOB = "vector_index"
_KNOWN_SECONDS = 5.0
# An index that is missing may be under way, or not be wanted after all: passages may have no vectors yet.
_ASKED_SECONDS = 60.0
_ELSEWHERE_SECONDS = 15.0
_DIMENSIONS = "SELECT dimensions FROM memory.embedding_models WHERE id = $1"


def index_of(model_id: int, dimensions: int) -> VectorIndex:
    """Returns the index of the vectors of passages."""
    return VectorIndex("memory.passage_vectors", model_id, dimensions)


class VectorIndexes:
    """The known states of the indexes that searches may use. A search that finds one missing asks for the job."""

    def __init__(self, pool: asyncpg.Pool, *, known_seconds: float = _KNOWN_SECONDS) -> None:
        self._pool = pool
        self._known_seconds = known_seconds
        self._known: dict[int, tuple[float, IndexState]] = {}
        self._ask_again: dict[int, float] = {}

    async def state(self, organization_id: UUID, model: EmbeddingModel, passages: int) -> IndexState:
        """Returns at most a few seconds old; the job, if a search among `passages` needs it, is the organization's."""
        index = index_of(model.id, model.dimensions)
        if not index.possible:
            return IndexState()
        until, state = self._known.get(model.id, (0.0, IndexState()))
        if time.monotonic() < until:
            return state
        state = await read_state(self._pool, index)
        self._known[model.id] = time.monotonic() + self._known_seconds, state
        if self._is_due(model.id, state, passages):
            await add_job(self._pool, organization_id, INDEX_JOB, str(model.id))
        return state

    def _is_due(self, model_id: int, state: IndexState, passages: int) -> bool:
        if state.valid and state.buildable:
            return state.overdue
        now = time.monotonic()
        if passages <= LEAST_VECTORS or now < self._ask_again.get(model_id, 0.0):
            return False
        # A job that may not build says so in the log, once.
        self._ask_again[model_id] = now + _ASKED_SECONDS if state.buildable else math.inf
        return True


class VectorIndexing:
    """Handles jobs whose subject is the number of a model."""

    def __init__(self, pool: asyncpg.Pool, direct_url: str, *, memory_mib: int) -> None:
        self._pool = pool
        self._direct_url = direct_url
        self._memory_mib = memory_mib
        self._one = asyncio.Lock()

    async def handle(self, job: Job) -> Reschedule | None:
        """Returns one at a time, so that other jobs of this process have their turn meanwhile."""
        dimensions = await self._pool.fetchval(_DIMENSIONS, int(job.subject))
        if dimensions is None:
            return None
        if self._one.locked():
            return Reschedule(_ELSEWHERE_SECONDS)
        async with self._one:
            index = index_of(int(job.subject), dimensions)
            done = await tend(self._direct_url, index, memory_mib=self._memory_mib)
        return None if done else Reschedule(_ELSEWHERE_SECONDS)
