"""Archival memory: passages are embedded, stored and found again."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from services.common import words
from services.common.errors import Aborted, FailedPrecondition, LociError
from services.memory.archival.passages import (
    PassageQuery,
    checked_drafts,
    checked_query,
    id_of_default_archive,
    to_embed,
    unit_vector,
)
from services.memory.archival.search import Hit, Part, Ranked, depth, fuse, scope_of
from services.memory.model import Archive, CallRecord, EmbeddingModel, Passage, PassageDraft
from services.memory.ports import ArchiveChanged, Embedder, NewPassages, PassageStore, Rankings

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
_INSERT_SECONDS = 60.0
_MOST_DIMENSIONS = 16_000


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first. `without_vectors`: handles that could not be asked, so that words alone decided."""

    hits: list[Hit]
    without_vectors: tuple[str, ...] = ()


class Archival:
    """Insertion and search. `search_seconds`: how long a search waits for the embedding of its query."""

    def __init__(self, store: PassageStore, rankings: Rankings, embedder: Embedder, *, search_seconds: float) -> None:
        self._store = store
        self._rankings = rankings
        self._embedder = embedder
        self._search_seconds = search_seconds

    async def insert(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        drafts: Sequence[PassageDraft],
        embedding: str,
        record: CallRecord | None = None,
    ) -> list[Passage]:
        """Stores passages in the agent's default archive; if there is none, it is made for `embedding`.

        Raises Refused; CallRepeated when there is a result under the record's key; the LociError of the
        embedder, and then nothing is stored.
        """
        drafts = checked_drafts(drafts)
        # A long text takes a while, in which others shall be served.
        search_words = await asyncio.to_thread(_search_words, drafts)
        for _ in range(_ATTEMPTS):
            archive = await self._store.default_archive(organization_id, agent_id)
            model, vectors = await self._embedded(archive, embedding, drafts)
            new = NewPassages(
                agent_id=agent_id,
                archive_id=id_of_default_archive(agent_id) if archive is None else archive.id,
                archive_name=f"Archive of agent-{agent_id}" if archive is None else None,
                model=model,
                drafts=drafts,
                search_words=search_words,
                vectors=vectors,
            )
            try:
                return await self._store.insert(organization_id, user_id, new, record)
            except ArchiveChanged:
                continue
        raise Aborted(f"the archive of agent-{agent_id} keeps changing", reason="ARCHIVE_CHANGED")

    async def search(self, organization_id: UUID, agent_id: UUID, query: PassageQuery) -> Found:
        """Asks words and vectors at the same time and fuses the answers. Without vectors, words alone answer.

        Raises Refused.
        """
        query = checked_query(query)
        scope = scope_of(await self._store.archives(organization_id, agent_id))
        if not scope.whole.passages:
            return Found([])
        limit = depth(query.top_k)
        async with asyncio.TaskGroup() as tasks:
            texts = tasks.create_task(self._rankings.by_words(organization_id, scope, query.text, query.filter, limit))
            vectors = {
                model: tasks.create_task(self._by_vector(organization_id, model, part, query, limit))
                for model, part in scope.by_model.items()
            }
        answers = {model: task.result() for model, task in vectors.items()}
        fused = fuse([ranking for ranking in answers.values() if ranking is not None], texts.result(), query.top_k)
        passages = await self._store.by_keys(organization_id, [(one.archive_id, one.passage_id) for one in fused])
        hits = [
            Hit(passage, one.score, one.vector, one.text)
            for one in fused
            if (passage := passages.get((one.archive_id, one.passage_id))) is not None
        ]
        return Found(hits, tuple(model.handle for model, ranking in answers.items() if ranking is None))

    async def _embedded(
        self, archive: Archive | None, embedding: str, drafts: Sequence[PassageDraft]
    ) -> tuple[EmbeddingModel | None, list[list[float] | None]]:
        """The model of the archive (to be) and a vector per draft."""
        if archive is not None:
            embedding = "" if archive.model is None else archive.model.handle
        if not embedding:
            return None, [None] * len(drafts)
        texts = [to_embed(draft.text) for draft in drafts]
        vectors = await self._embedder.embed(embedding, texts, _INSERT_SECONDS)
        dimensions = len(vectors[0])
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise _unusable(embedding, f"vectors of {dimensions} dimensions; there may be 1 to {_MOST_DIMENSIONS}")
        if archive is not None and archive.model is not None and archive.model.dimensions != dimensions:
            raise _unusable(
                embedding, f"{dimensions} dimensions, but the archive began with {archive.model.dimensions}"
            )
        model = await self._store.embedding_model(embedding, dimensions)
        return model, [_unit(embedding, vector) for vector in vectors]

    async def _by_vector(
        self,
        organization_id: UUID,
        model: EmbeddingModel,
        part: Part,
        query: PassageQuery,
        limit: int,
    ) -> list[Ranked] | None:
        """The ranking by one model's vectors; None when the query cannot be embedded now."""
        try:
            [values] = await self._embedder.embed(model.handle, [to_embed(query.text)], self._search_seconds)
            if len(values) != model.dimensions:
                raise _unusable(model.handle, f"{len(values)} dimensions instead of {model.dimensions}")
            vector = _unit(model.handle, values)
        except LociError as error:
            logger.warning("a query could not be embedded", extra={"model": model.handle, "reason": error.reason})
            return None
        if vector is None:
            return []
        return await self._rankings.by_vector(organization_id, part, model, vector, query.filter, limit)


def _search_words(drafts: Sequence[PassageDraft]) -> list[list[str]]:
    return [words.to_index(draft.text) for draft in drafts]


def _unit(handle: str, values: Sequence[float]) -> list[float] | None:
    try:
        return unit_vector(values)
    except ValueError as error:
        raise _unusable(handle, str(error)) from None


def _unusable(handle: str, problem: str) -> FailedPrecondition:
    return FailedPrecondition(f"the embedding model {handle} answered with {problem}", reason="EMBEDDING_INVALID")
