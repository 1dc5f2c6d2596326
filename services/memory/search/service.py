"""Passages are found again: words and vectors are asked at the same time, their answers fused, neighbours added."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from services.common.core.fusion import FusedScore, prefer, rerank
from services.common.core.named_events import named_event
from services.common.core.named_times import asks_of_the_past, named_time
from services.common.core.neighbours import NEIGHBOUR_STEPS, Neighbour, add_neighbours, contexts, givers
from services.common.core.ranking import depth
from services.common.core.vectors import to_embed
from services.common.errors import LociError
from services.common.search_settings import SearchSettings
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ports.embedding_changes import ModelAlternatives
from services.memory.core.ports.passages import PassageStore
from services.memory.core.ports.search import Rankings, SearchModels
from services.memory.core.ranking.search import Hit, Part, RankedPassage, Scope, VectorRanking, fuse
from services.memory.embedding_changes.model import usable_alternatives
from services.memory.passages.embedding import unit, unusable_vector
from services.memory.passages.model import (
    Passage,
    PassageFilter,
    PassageKey,
    PassageQuery,
    Place,
    SearchMode,
    validate_query,
)

_NOW = partial(datetime.now, UTC)
# The best of a search that a reranker reads, which takes milliseconds for each.
_MOST_RERANKED = 30

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first. `without_vectors`: handles that could not be asked, so that words alone decided."""

    hits: list[Hit]
    without_vectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answers:
    """The rankings by the vectors of each embedding model's passages, or why there are none; and that by words."""

    vectors: dict[EmbeddingModel, list[VectorRanking] | LociError]
    texts: list[RankedPassage]


class PassageSearch:
    """Searches. search_seconds: how long one waits for the embedding of its query; now: when questions are asked."""

    def __init__(
        self,
        store: PassageStore,
        rankings: Rankings,
        embedder: SearchModels,
        sides: ModelAlternatives,
        *,
        search_seconds: float,
        settings: SearchSettings,
        now: Callable[[], datetime] = _NOW,
    ) -> None:
        self._store = store
        self._sides = sides
        self._rankings = rankings
        self._embedder = embedder
        self._search_seconds = search_seconds
        self._settings = settings
        self._now = now

    async def search(self, organization_id: UUID, place: Place, query: PassageQuery) -> SearchResult:
        """Returns the best passages of a place. Without vectors, a hybrid search is answered by words alone.

        Raises Refused; NotFound (ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND); the embedder's LociError in a search by vectors.
        """
        query = validate_query(query)
        scope = await self._store.scope(organization_id, place)
        if not scope.whole.passages:
            return SearchResult([])
        query, more = self._at_named_time(query)
        more = more or await self._beside_named_event(organization_id, scope, query)
        answers, *others = await asyncio.gather(*(self._answers(organization_id, scope, one) for one in (query, *more)))
        failed = {model: error for model, error in answers.vectors.items() if isinstance(error, LociError)}
        if query.mode is SearchMode.VECTOR and failed:
            raise next(iter(failed.values()))
        fused = _fused(answers, query.mode)
        if others:
            fused = prefer(fused, *(_fused(one, query.mode) for one in others))
        if query.mode is SearchMode.HYBRID:
            fused = await self._with_neighbours(organization_id, fused, query.filter)
            fused = await self._reranked(organization_id, fused, query.text)
        hits = await self._hits(organization_id, fused[: query.top_k], query.context)
        return SearchResult(hits, tuple(model.handle for model in failed))

    def _at_named_time(self, query: PassageQuery) -> tuple[PassageQuery, list[PassageQuery]]:
        """Returns the question, of all times if it asks of the past, and the same to the time that it names, if any.

        What a caller says of the time counts instead.
        """
        filters = query.filter
        if query.mode is not SearchMode.HYBRID or any((filters.start, filters.end, filters.as_of, filters.history)):
            return query, []
        if asks_of_the_past(query.text):
            query = replace(query, filter=replace(filters, history=True))
        named = named_time(query.text, self._now())
        if named is None:
            return query, []
        told = replace(filters, start=named.start, end=named.end, history=True)
        true_then = replace(filters, as_of=named.last, ended=True)
        return query, [replace(query, text=named.rest or query.text, filter=one) for one in (told, true_then)]

    async def _beside_named_event(self, organization_id: UUID, scope: Scope, query: PassageQuery) -> list[PassageQuery]:
        """Returns the same question to what was stored before, or after, the event that it names, if any."""
        filters = query.filter
        event = named_event(query.text)
        if event is None or query.mode is not SearchMode.HYBRID or any((filters.start, filters.end, filters.as_of)):
            return []
        best = await self._rankings.by_words(organization_id, scope, event.text, filters, 1)
        keys = [(one.archive_id, one.passage_id) for one in best]
        told = [
            event.bounds(passage.created_at) for passage in (await self._store.by_keys(organization_id, keys)).values()
        ]
        narrowed = [replace(filters, start=start, end=end) for start, end in told]
        return [replace(query, text=event.rest or query.text, filter=one) for one in narrowed]

    async def _with_neighbours(
        self, organization_id: UUID, fused: list[FusedScore[PassageKey]], filters: PassageFilter
    ) -> list[FusedScore[PassageKey]]:
        share, keys = self._settings.neighbour_share, givers(fused)
        if not share or not keys:
            return fused
        neighbours = await self._rankings.neighbours(organization_id, keys, filters, NEIGHBOUR_STEPS)
        return add_neighbours(fused, neighbours, share)

    async def _reranked(
        self, organization_id: UUID, fused: list[FusedScore[PassageKey]], text: str
    ) -> list[FusedScore[PassageKey]]:
        """Returns the best in the order of a reranker, where there is one; while it does not answer, as they are."""
        handle = self._settings.reranker
        passages = {}
        if handle:
            passages = await self._store.by_keys(organization_id, [one.key for one in fused[:_MOST_RERANKED]])
        if not passages:
            return fused
        texts = [to_embed(passage.text) for passage in passages.values()]
        try:
            scores = await self._embedder.rerank(handle, text, texts, self._search_seconds)
        except LociError as error:
            logger.warning("hits could not be reranked", extra={"model": handle, "reason": error.reason})
            return fused
        return rerank(fused, dict(zip(passages, scores, strict=True)))

    async def _hits(self, organization_id: UUID, fused: Sequence[FusedScore[PassageKey]], context: int) -> list[Hit]:
        keys = [one.key for one in fused]
        beside: Mapping[PassageKey, Sequence[Neighbour[PassageKey]]] = {}
        if context:
            beside = contexts(await self._rankings.neighbours(organization_id, keys, PassageFilter(), context))
        others = (one.key for some in beside.values() for one in some)
        passages = await self._store.by_keys(organization_id, list(dict.fromkeys([*keys, *others])))
        return [
            Hit(passage, one.score, one.vector, one.text, *_sides(beside.get(one.key, ()), passages))
            for one in fused
            if (passage := passages.get(one.key)) is not None
        ]

    async def _answers(self, organization_id: UUID, scope: Scope, query: PassageQuery) -> _Answers:
        limit = depth(query.top_k)
        by_model = {} if query.mode is SearchMode.TEXT else scope.by_model
        async with asyncio.TaskGroup() as tasks:
            vectors = {
                model: tasks.create_task(self._by_vector(organization_id, model, part, query, limit))
                for model, part in by_model.items()
            }
            texts = []
            if query.mode is not SearchMode.VECTOR:
                texts = await self._rankings.by_words(organization_id, scope, query.text, query.filter, limit)
        return _Answers({model: task.result() for model, task in vectors.items()}, texts)

    async def _by_vector(
        self, organization_id: UUID, model: EmbeddingModel, part: Part, query: PassageQuery, limit: int
    ) -> list[VectorRanking] | LociError:
        """Returns the ranking by one model's vectors; an error where the query cannot be embedded now."""
        try:
            vector = await self._embed(model, query.text)
        except LociError as error:
            logger.warning("a query could not be embedded", extra={"model": model.handle, "reason": error.reason})
            return await self._by_alternatives(organization_id, model, part, query, limit) or error
        if vector is None:
            return []
        passages = await self._rankings.by_vector(organization_id, part, model, vector, query.filter, limit)
        return [self._weighed(model, passages)]

    async def _by_alternatives(
        self, organization_id: UUID, model: EmbeddingModel, part: Part, query: PassageQuery, limit: int
    ) -> list[VectorRanking]:
        """Ranks by the vectors that a change of embedding models makes, or keeps; empty where they do not do."""
        sides = usable_alternatives(await self._sides.alternatives(organization_id, part.archive_ids, model))
        if query.mode is SearchMode.VECTOR and sum(side.passages for side in sides.values()) < part.passages:
            return []
        rankings = []
        for other, its_part in sides.items():
            try:
                vector = await self._embed(other, query.text)
            except LociError:
                return []
            if vector is not None:
                passages = await self._rankings.by_vector(organization_id, its_part, other, vector, query.filter, limit)
                rankings.append(self._weighed(other, passages))
        return rankings

    def _weighed(self, model: EmbeddingModel, passages: Sequence[RankedPassage]) -> VectorRanking:
        return VectorRanking(passages, self._settings.weight(model.handle))

    async def _embed(self, model: EmbeddingModel, text: str) -> Sequence[float] | None:
        [values] = await self._embedder.embed(model.handle, [to_embed(text)], self._search_seconds)
        if len(values) != model.dimensions:
            raise unusable_vector(model.handle, f"{len(values)} dimensions instead of {model.dimensions}")
        return unit(model.handle, values)


def _fused(answers: _Answers, mode: SearchMode) -> list[FusedScore[PassageKey]]:
    rankings = [one for some in answers.vectors.values() if not isinstance(some, LociError) for one in some]
    return fuse(rankings, answers.texts, mode)


def _sides(
    neighbours: Sequence[Neighbour[PassageKey]], passages: Mapping[PassageKey, Passage]
) -> tuple[list[Passage], list[Passage]]:
    """Returns the passages before and after one, those that are there still."""
    there = [(one.distance, passages[one.key]) for one in neighbours if one.key in passages]
    return [one for distance, one in there if distance < 0], [one for distance, one in there if distance > 0]
