"""The indexes of messages' vectors, one per model: what is known of them, and who keeps them."""

import asyncio
import logging
import random
import time

import asyncpg

from services.agent.core.ports_recall import EmbeddingModel
from services.common.vector_indexes import IndexState, VectorIndex, read_state, tend

_KNOWN_SECONDS = 5.0
# Between two looks at what waits.
_LOOK_SECONDS = 30.0
_MODELS = "SELECT id, handle, dimensions FROM agent.embedding_models ORDER BY id"

_log = logging.getLogger(__name__)


def index_of(model: EmbeddingModel) -> VectorIndex:
    """Returns the index over the vectors of messages."""
    return VectorIndex("agent.message_vectors", model.id, model.dimensions)


class VectorIndexes:
    """The state of the indexes that a search may use."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._known: dict[int, tuple[float, IndexState]] = {}

    async def state(self, model: EmbeddingModel) -> IndexState:
        """Returns the state of the index, at most a few seconds old."""
        index = index_of(model)
        if not index.possible:
            return IndexState()
        until, state = self._known.get(model.id, (0.0, IndexState()))
        if time.monotonic() >= until:
            state = await read_state(self._pool, index)
            self._known[model.id] = time.monotonic() + _KNOWN_SECONDS, state
        return state


class VectorIndexing:
    """Builds the indexes and lets them take in what waits. Replicas agree who does by a lock in the database.

    direct_url: past PgBouncer. memory_mib: what building may take.
    """

    def __init__(self, pool: asyncpg.Pool, direct_url: str, *, memory_mib: int) -> None:
        self._pool = pool
        self._direct_url = direct_url
        self._memory_mib = memory_mib

    async def run(self) -> None:
        """Looks from time to time, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS * random.uniform(0.5, 1.5))
            try:
                await self.look()
            except Exception:  # noqa: BLE001
                # The supervisor of indexes: searches read what no index holds, and the next look is another chance.
                _log.exception("the indexes of vectors could not be kept")

    async def look(self) -> None:
        """Does what is overdue, one model after the other."""
        for row in await self._pool.fetch(_MODELS):
            index = index_of(EmbeddingModel(*row))
            if index.possible:
                state = await read_state(self._pool, index)
                if state.overdue and state.buildable:
                    await tend(self._direct_url, index, memory_mib=self._memory_mib)
