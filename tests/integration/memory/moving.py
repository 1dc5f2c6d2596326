"""An archive whose embedding model is changed, and workers that die."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from loci.memory.v1 import archive_service_pb2 as pb
from services.common.core.vectors import unit_vector
from services.common.vectors import encode
from services.memory.embedding_changes.model import EmbeddingChange, Position, TextVector
from services.memory.jobs.worker import Worker
from tests.integration.memory.harness import EMBEDDING, Memory, concept_vector, sized

WIDE, NARROW = "test/wide", "test/narrow"
SIZES = {WIDE: 8, NARROW: 5}
WORDS = ("cat", "dog", "car", "code", "tea")

RUNNING, COMPLETED, ROLLED_BACK, FINISHED = (
    pb.EMBEDDING_CHANGE_STATE_RUNNING,
    pb.EMBEDDING_CHANGE_STATE_COMPLETED,
    pb.EMBEDDING_CHANGE_STATE_ROLLED_BACK,
    pb.EMBEDDING_CHANGE_STATE_FINISHED,
)


def stored(text: str, size: int) -> bytes:
    """A text's vector of so many dimensions, by way of 32-bit floats."""
    return encode(unit_vector(array("f", sized(concept_vector(text), size))) or [])


class Moving:
    """An agent whose archive is changed."""

    def __init__(self, memory: Memory, agent_id: str, archive_id: str) -> None:
        self.memory = memory
        self.agent_id = agent_id
        self.archive_id = archive_id
        self.key = (memory.caller.organization_id, UUID(archive_id.removeprefix("archive-")))

    async def change(self, embedding: str) -> Any:
        request = pb.ChangeEmbeddingRequest(archive_id=self.archive_id, embedding=embedding)
        return (await self.memory.archives.ChangeEmbedding(request)).change

    async def progress(self) -> Any:
        request = pb.GetEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.GetEmbeddingChange(request)).change

    async def roll_back(self) -> Any:
        request = pb.RollBackEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.RollBackEmbeddingChange(request)).change

    async def finish(self) -> Any:
        request = pb.FinishEmbeddingChangeRequest(archive_id=self.archive_id)
        return (await self.memory.archives.FinishEmbeddingChange(request)).change

    async def work(self, worker: Worker | None = None) -> None:
        """Until there is nothing to do, without waiting for pauses."""
        worker = worker or self.memory.worker()
        await self.memory.pool.execute("UPDATE memory.jobs SET not_before = now()")
        while await worker.run_one():
            pass

    async def vectors(self) -> dict[str, int]:
        """How many passages have a vector of each model."""
        query = """
            SELECT e.handle, count(*) FROM memory.passage_vectors v JOIN memory.embedding_models e ON e.id = v.model_id
            WHERE v.organization_id = $1 AND v.archive_id = $2 GROUP BY e.handle
        """
        return {row[0]: row[1] for row in await self.memory.pool.fetch(query, *self.key)}

    async def embedding(self) -> Any:
        """The handle that is used now, told by the model that searches use."""
        query = """
            SELECT a.embedding, e.handle FROM memory.archives a LEFT JOIN memory.embedding_models e ON e.id = a.model_id
            WHERE a.organization_id = $1 AND a.id = $2
        """
        expected, used = await self.memory.pool.fetchrow(query, *self.key)
        assert expected == used
        return used

    async def wrong(self, handle: str) -> list[str]:
        """Texts whose vector of that model is missing, or not theirs."""
        query = """
            SELECT p.text, v.embedding FROM memory.passages p
            LEFT JOIN memory.embedding_models e ON (e.handle, e.dimensions) = ($3, $4)
            LEFT JOIN memory.passage_vectors v ON v.organization_id = p.organization_id
                AND v.archive_id = p.archive_id AND v.passage_id = p.id AND v.model_id = e.id
            WHERE p.organization_id = $1 AND p.archive_id = $2
        """
        size = SIZES.get(handle, 6)
        rows = await self.memory.pool.fetch(query, *self.key, handle, size)
        return [text for text, vector in rows if vector != stored(text, size)]

    async def found(self, query: str, top_k: int = 3) -> list[Any]:
        return await self.memory.search(self.agent_id, query, top_k=top_k)


async def archive_with(memory: Memory, *texts: str, embedding: str = EMBEDDING) -> Moving:
    agent_id = await memory.agent_with()
    stored = await memory.store(agent_id, *texts, embedding=embedding)
    return Moving(memory, agent_id, stored[0].archive_id)


def summary(change: Any) -> tuple[str, str, int, int, int]:
    return change.from_embedding, change.to_embedding, change.state, change.embedded, change.total


@asynccontextmanager
async def stop_after(moving: Moving, *, writes: int) -> AsyncIterator[None]:
    """A process that is killed after so many stored batches; its lease is left."""
    store, left = moving.memory.stores.changes, writes
    write = store.write

    async def statement_counts(
        organization_id: UUID, change: EmbeddingChange, vectors: Sequence[TextVector], position: Position | None
    ) -> bool:
        nonlocal left
        if left == 0:
            raise asyncio.CancelledError
        left -= 1
        return await write(organization_id, change, vectors, position)

    lock = store.lock

    def killed(organization_id: UUID, change: EmbeddingChange) -> Any:
        raise asyncio.CancelledError

    store.write, store.lock = statement_counts, killed  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        yield
    store.write, store.lock = write, lock  # type: ignore[method-assign]


async def take_over(moving: Moving) -> Worker:
    """Another worker, once the lease of the first has ended."""
    await moving.memory.pool.execute("UPDATE memory.jobs SET leased_until = now() - interval '1 second'")
    return moving.memory.worker()
