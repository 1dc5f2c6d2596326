"""The memory service under the same questions: real gRPC, real Postgres, and an embedding that costs nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from google.protobuf.field_mask_pb2 import FieldMask

from bench.memory_score.history import History, Note, Question
from bench.memory_score.metrics import DEPTH, Answer
from loci.llm.v1 import model_service_pb2 as llm_pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passage_pb
from services.common.ids import from_public, to_public
from services.common.search_settings import SearchSettings
from services.common.timestamps import timestamp
from tests.integration.memory.harness import ConceptModels, Memory, embeddings, memory_service

MODES = {
    "text": passage_pb2.SEARCH_MODE_TEXT,
    "vector": passage_pb2.SEARCH_MODE_VECTOR,
    "hybrid": passage_pb2.SEARCH_MODE_HYBRID,
}
_AT_ONCE = 500
Embedding = Callable[[str], list[float]]


@dataclass
class OneModel(ConceptModels):
    """Embeds by a function, under whatever handle it is asked."""

    function: Embedding = field(default=lambda text: [1.0])

    async def Embed(self, request: llm_pb.EmbedRequest, context: Any) -> llm_pb.EmbedResponse:
        """One vector per text."""
        vectors = [self.function(text) for text in request.texts]
        return llm_pb.EmbedResponse(
            vectors=[llm_pb.Vector(values=vector) for vector in vectors], dimensions=len(vectors[0])
        )


@asynccontextmanager
async def memory_with(url: str, folder: Path, embedding: Embedding, settings: SearchSettings) -> AsyncIterator[Memory]:
    """A memory service on a migrated database whose embedding model is `embedding`."""
    models = OneModel(function=embedding)  # type: ignore[abstract] # the rest of that service is not called
    async with (
        embeddings(folder, models) as channel,
        memory_service(url, folder, llm_channel=channel, models=models, search_settings=settings) as memory,
    ):
        yield memory


class Product:
    """A history in the memory service: an agent per tenant, a passage per note."""

    def __init__(self, memory: Memory, history: History) -> None:
        self._memory = memory
        self._history = history
        tenants = sorted({note.tenant for note in history.notes})
        self._organizations = {tenant: uuid4() for tenant in tenants}
        self._agents = {tenant: to_public("agent", uuid4()) for tenant in tenants}
        self._tenant_of = {note.id: note.tenant for note in history.notes}

    async def load(self, handle: str) -> None:
        """All of it as it came, then what was corrected and deleted."""
        for tenant in self._organizations:
            notes = [note for note in self._history.notes if note.tenant == tenant]
            with self._memory.of(self._organizations[tenant]):
                for begin in range(0, len(notes), _AT_ONCE):
                    await self._store(tenant, notes[begin : begin + _AT_ONCE], handle)
                for note in notes:
                    await self._change(tenant, note)

    async def _store(self, tenant: int, notes: Sequence[Note], handle: str) -> None:
        drafts = [_draft(note) for note in notes]
        request = passage_pb.CreatePassagesRequest(agent_id=self._agents[tenant], passages=drafts, embedding=handle)
        await self._memory.passages.CreatePassages(request)

    async def _change(self, tenant: int, note: Note) -> None:
        agent_id, passage_id = self._agents[tenant], to_public("passage", note.id)
        if note.id in self._history.corrected:
            corrected = passage_pb.PassageDraft(text=self._history.corrected[note.id])
            await self._memory.passages.UpdatePassage(
                passage_pb.UpdatePassageRequest(
                    agent_id=agent_id, passage_id=passage_id, passage=corrected, update_mask=FieldMask(paths=["text"])
                )
            )
        if note.id in self._history.deleted:
            await self._memory.passages.DeletePassage(
                passage_pb.DeletePassageRequest(agent_id=agent_id, passage_id=passage_id)
            )

    async def answers(self, mode: str, memory: Memory | None = None) -> list[Answer]:
        """Returns the answer to every question, in order; `memory`: another service on the same database."""
        gate = asyncio.Semaphore(4)

        async def one(question: Question) -> Answer:
            async with gate:
                return await self._answer(question, mode, memory or self._memory)

        return list(await asyncio.gather(*map(one, self._history.questions)))

    async def _answer(self, question: Question, mode: str, memory: Memory) -> Answer:
        request = passage_pb.SearchPassagesRequest(
            agent_id=self._agents[question.tenant],
            query=question.text,
            top_k=DEPTH,
            mode=MODES[mode],
            start_time=None if question.start is None else timestamp(question.start),
            end_time=None if question.end is None else timestamp(question.end),
        )
        with memory.of(self._organizations[question.tenant]):
            hits = (await memory.passages.SearchPassages(request)).hits
        ids = [from_public("passage", hit.passage.id) for hit in hits]
        return Answer(question, ids, [hit.passage.text for hit in hits], [self._tenant(note_id) for note_id in ids])

    def _tenant(self, note_id: UUID) -> int:
        return self._tenant_of[note_id]


def _draft(note: Note) -> passage_pb.PassageDraft:
    return passage_pb.PassageDraft(
        id=to_public("passage", note.id), text=note.text, tags=note.tags, created_at=timestamp(note.made_at)
    )
