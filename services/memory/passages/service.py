"""Passages go into archives: they are embedded first, then stored with words and vectors in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from services.common.core import words
from services.common.core.refusals import Refused
from services.common.core.vectors import to_embed
from services.common.errors import Aborted
from services.common.ids import uuid7
from services.memory.agent_tools.model import CallRecord
from services.memory.archives.model import Archive, EmbeddingModel
from services.memory.core.errors import ArchiveConflict
from services.memory.core.ports.passages import ArchiveStore, PassageStore
from services.memory.core.ports.search import Embedder
from services.memory.core.vectors import MOST_DIMENSIONS
from services.memory.passages.embedding import embed_all, unit, unusable_vector
from services.memory.passages.model import (
    EmbeddedTexts,
    InArchive,
    NewPassages,
    OfAgent,
    Passage,
    PassageDraft,
    Place,
    draft_vectors,
    validate_changes,
    validate_drafts,
)
from services.memory.retries import retry

T = TypeVar("T")

_ATTEMPTS = 5
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors of one length, each at length 1, or None where it has no direction."""

    dimensions: int
    vectors: Sequence[Sequence[float] | None]


class PassageService:
    """Stores and changes passages."""

    def __init__(self, store: PassageStore, archives: ArchiveStore, embedder: Embedder) -> None:
        self._passages = store
        self._archives = archives
        self._embedding = embedder

    async def insert(
        self,
        organization_id: UUID,
        user_id: UUID,
        target: OfAgent | InArchive,
        drafts: Sequence[PassageDraft],
        embedding: str = "",
        record: CallRecord | None = None,
        agent_name: str = "",
    ) -> list[Passage]:
        """Stores passages in an archive, or in the agent's default one.

        If there is none, it is made for `embedding`, and named after `agent_name`, or else after the agent's id.

        Vectors that the drafts bring are of the archive's own model; without them, the texts are embedded.

        Raises Refused; NotFound (ARCHIVE_NOT_FOUND); DuplicateCall when there is a result under the record's key; the
        LociError of the embedder. Then nothing is stored.
        """
        drafts = validate_drafts(drafts)
        vectors = await asyncio.to_thread(_vectors_of, drafts) if drafts[0].embedding else _vectors_of(drafts)
        texts = _Texts(self._embedding, self._passages, [draft.text for draft in drafts], vectors)

        async def once() -> list[Passage]:
            archive = await self._archive(organization_id, target)
            new = NewPassages(
                archive_id=uuid7() if archive is None else archive.id,
                default_of=target.agent_id if archive is None and isinstance(target, OfAgent) else None,
                agent_name=agent_name,
                drafts=drafts,
                embedded=await texts.embedded(archive, embedding),
            )
            return await self._passages.insert(organization_id, user_id, new, record)

        return await _retry_on_conflict(once)

    async def update(
        self, organization_id: UUID, user_id: UUID, place: Place, passage_id: UUID, changes: Mapping[str, Any]
    ) -> Passage:
        """Changes a passage; a new text is embedded first. Raises as `insert`, and NotFound (PASSAGE_NOT_FOUND)."""
        changes = validate_changes(changes)
        passage = await self._passages.get(organization_id, place, passage_id)
        key = passage.archive_id, passage_id
        if changes.get("text", passage.text) == passage.text:
            return await self._passages.update(organization_id, user_id, key, changes, None)
        texts = _Texts(self._embedding, self._passages, [changes["text"]])

        async def once() -> Passage:
            archive = await self._archives.get(organization_id, passage.archive_id)
            embedded = await texts.embedded(archive)
            return await self._passages.update(organization_id, user_id, key, changes, embedded)

        return await _retry_on_conflict(once)

    async def _archive(self, organization_id: UUID, target: OfAgent | InArchive) -> Archive | None:
        if isinstance(target, InArchive):
            return await self._archives.get(organization_id, target.archive_id)
        return await self._passages.default_archive(organization_id, target.agent_id)


class _Texts:
    """Texts with their words; they are embedded once for each model that turns out to be needed, unless they were."""

    def __init__(
        self, embedder: Embedder, store: PassageStore, texts: Sequence[str], vectors: _Vectors | None = None
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._texts = texts
        self._given = vectors
        self._search_words: list[list[str]] | None = None
        self._embedded: EmbeddedTexts | None = None

    async def embedded(self, archive: Archive | None, embedding: str = "") -> EmbeddedTexts:
        """Returns them for this archive; None: for one to be made with the handle `embedding`."""
        if archive is not None:
            embedding = (archive.embedding if archive.model is None else archive.model.handle) or ""
        if self._given is not None:
            _fits(self._given, embedding, None if archive is None else archive.model)
        if self._embedded is None or (self._embedded.embedding or "") != embedding:
            self._embedded = await self._embed(embedding)
        model = self._embedded.model
        if archive is not None and archive.model is not None and model is not None and archive.model != model:
            raise unusable_vector(
                embedding, f"{model.dimensions} dimensions, but the archive began with {archive.model.dimensions}"
            )
        return self._embedded

    async def _embed(self, embedding: str) -> EmbeddedTexts:
        if self._search_words is None:
            # A long text takes a while, in which others shall be served.
            self._search_words = await asyncio.to_thread(words.index_words_of_all, self._texts)
        if not embedding:
            nothing = [None] * len(self._texts)
            return EmbeddedTexts(embedding=None, model=None, search_words=self._search_words, vectors=nothing)
        vectors = self._given or await self._ask_model(embedding)
        model = await self._store.embedding_model(embedding, vectors.dimensions)
        return EmbeddedTexts(embedding=embedding, model=model, search_words=self._search_words, vectors=vectors.vectors)

    async def _ask_model(self, embedding: str) -> _Vectors:
        vectors = await embed_all(self._embedder, embedding, [to_embed(text) for text in self._texts], _SECONDS)
        dimensions = len(vectors[0])
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise unusable_vector(embedding, f"vectors of {dimensions} dimensions; there may be 1 to {MOST_DIMENSIONS}")
        return _Vectors(dimensions, await asyncio.to_thread(_units, embedding, vectors))


def _vectors_of(drafts: Sequence[PassageDraft]) -> _Vectors | None:
    vectors = draft_vectors(drafts)
    return None if vectors is None else _Vectors(len(drafts[0].embedding), vectors)


def _fits(vectors: _Vectors, embedding: str, model: EmbeddingModel | None) -> None:
    if not embedding:
        raise Refused("PASSAGE_INVALID", "the archive has no embedding model, so its passages have no vectors")
    if model is not None and model.dimensions != vectors.dimensions:
        raise Refused(
            "PASSAGE_INVALID",
            f"vectors of {vectors.dimensions} dimensions do not go into an archive whose have {model.dimensions}",
        )


async def _retry_on_conflict(once: Callable[[], Awaitable[T]]) -> T:
    try:
        return await retry(once, ArchiveConflict, attempts=_ATTEMPTS)
    except ArchiveConflict:
        raise Aborted("the archive keeps changing; try again", reason="ARCHIVE_CHANGED") from None


def _units(handle: str, vectors: Sequence[Sequence[float]]) -> list[list[float] | None]:
    return [unit(handle, vector) for vector in vectors]
