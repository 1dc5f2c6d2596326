"""Search over messages: by words, by meaning, or both."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.ports_recall import Embedder, EmbeddingModel, Rankings
from services.agent.core.recall.query import (
    MessageFilter,
    MessageHit,
    MessageQuery,
    Mode,
    RankedMessage,
    Scope,
    VectorRanking,
    check_query,
    fuse,
)
from services.common.core.fusion import FusedScore, prefer
from services.common.core.named_events import named_event
from services.common.core.named_times import named_time
from services.common.core.neighbours import NEIGHBOUR_STEPS, Neighbour, add_neighbours, contexts, givers
from services.common.core.ranking import depth
from services.common.core.vectors import unit_vector
from services.common.errors import Internal, LociError
from services.common.search_settings import STANDARD, SearchSettings

# A query is short; whoever searches waits for its vector.
EMBED_SECONDS = 2.0
# Vectors are of more than one model only while an agent's is being changed, or where agents differ.
_MOST_MODELS = 4
_NOW = partial(datetime.now, UTC)

_log = logging.getLogger(__name__)


class Search:
    """Finds messages. Without an embedder, by words alone. now: when questions are asked."""

    def __init__(
        self,
        rankings: Rankings,
        embedder: Embedder | None,
        settings: SearchSettings = STANDARD,
        now: Callable[[], datetime] = _NOW,
    ) -> None:
        self._rankings = rankings
        self._embedder = embedder
        self._settings = settings
        self._now = now

    async def scope(self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID | None = None) -> Scope:
        """Returns where to search. Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND)."""
        return await self._rankings.scope(organization_id, agent_id, conversation_id)

    async def beginnings(self, text: str) -> Sequence[Sequence[str]]:
        """Returns what words that fit a text begin with, in lower case: its stems, then the words as they are."""
        return await self._rankings.beginnings(text)

    async def find(self, scope: Scope, query: MessageQuery) -> tuple[list[MessageHit], list[str]]:
        """Returns the best messages, and the models that did not answer, so that words alone decided.

        Raises Refused (MESSAGE_QUERY_INVALID), and with the mode VECTOR what a model that does not answer raises.
        """
        query = check_query(query)
        if not query.text:
            newest = await self._rankings.newest(scope, query.filter, query.limit)
            return await self._with_context(scope, query, newest), []
        narrowed = self._at_named_time(query) or await self._beside_named_event(scope, query)
        ranked, silent = await self._ranked(scope, query)
        if narrowed is not None:
            ranked = prefer(ranked, (await self._ranked(scope, narrowed))[0])
        if query.mode is Mode.HYBRID:
            ranked = await self._with_neighbours(scope, query.filter, ranked)
        found = await self._rankings.found(scope, ranked, query.filter, query.limit)
        return await self._with_context(scope, query, found), silent

    async def _ranked(self, scope: Scope, query: MessageQuery) -> tuple[list[FusedScore[UUID]], list[str]]:
        """Returns an order, and the models that did not answer."""
        # A model may take its time; the words are looked for meanwhile.
        (rankings, silent), words = await asyncio.gather(self._nearest(scope, query), self._by_words(scope, query))
        return fuse(rankings, words, query.mode), silent

    def _at_named_time(self, query: MessageQuery) -> MessageQuery | None:
        """Returns the same question to the time that it names; None if it names none, or the caller says which."""
        if not _is_of_any_time(query):
            return None
        named = named_time(query.text, self._now())
        if named is None:
            return None
        filters = replace(query.filter, start=named.start, end=named.end)
        return replace(query, text=named.rest or query.text, filter=filters)

    async def _beside_named_event(self, scope: Scope, query: MessageQuery) -> MessageQuery | None:
        """Returns the same question to what was said before, or after, the event that it names; None without one."""
        event = named_event(query.text)
        if event is None or not _is_of_any_time(query):
            return None
        best = await self._rankings.by_words(scope, event.text, query.filter, 1)
        ranked = [FusedScore(one.message_id, one.score) for one in best]
        for hit in await self._rankings.found(scope, ranked, query.filter, 1):
            start, end = event.bounds(hit.message.created_at)
            filters = replace(query.filter, start=start, end=end)
            return replace(query, text=event.rest or query.text, filter=filters)
        return None

    async def _with_neighbours(
        self, scope: Scope, filters: MessageFilter, ranked: list[FusedScore[UUID]]
    ) -> list[FusedScore[UUID]]:
        share, ids = self._settings.neighbour_share, givers(ranked)
        if not share or not ids:
            return ranked
        return add_neighbours(ranked, await self._rankings.neighbours(scope, ids, filters, NEIGHBOUR_STEPS), share)

    async def _with_context(self, scope: Scope, query: MessageQuery, hits: list[MessageHit]) -> list[MessageHit]:
        if not query.context or not hits:
            return hits
        filters = replace(query.filter, start=None, end=None)
        ids = [hit.message.id for hit in hits]
        beside = contexts(await self._rankings.neighbours(scope, ids, filters, query.context))
        others = {one.key: FusedScore(one.key, 0.0) for some in beside.values() for one in some}
        there = await self._rankings.found(scope, list(others.values()), filters, len(others))
        messages = {hit.message.id: hit.message for hit in there}
        return [_with_sides(hit, beside.get(hit.message.id, ()), messages) for hit in hits]

    async def _nearest(self, scope: Scope, query: MessageQuery) -> tuple[list[VectorRanking], list[str]]:
        """Returns a ranking for each model, and the models that did not answer."""
        rankings: list[VectorRanking] = []
        silent: list[str] = []
        for model in await self._models(scope, query.mode):
            weight = self._settings.weight(model.handle)
            try:
                rankings.append(VectorRanking(await self._by_vector(scope, model, query), weight))
            except LociError as error:
                if query.mode is Mode.VECTOR:
                    raise
                _log.warning("%s made no vector of a query: %s", model.handle, error.message)
                silent.append(model.handle)
        return rankings, silent

    async def _models(self, scope: Scope, mode: Mode) -> Sequence[EmbeddingModel]:
        if mode is Mode.TEXT or self._embedder is None or scope.embedding == "":
            return ()
        return (await self._rankings.models(scope))[:_MOST_MODELS]

    async def _by_words(self, scope: Scope, query: MessageQuery) -> list[RankedMessage]:
        if query.mode is Mode.VECTOR:
            return []
        return await self._rankings.by_words(scope, query.text, query.filter, depth(query.limit))

    async def _by_vector(self, scope: Scope, model: EmbeddingModel, query: MessageQuery) -> list[RankedMessage]:
        assert self._embedder is not None
        (values,) = await self._embedder.embed(model.handle, [query.text], EMBED_SECONDS)
        if len(values) != model.dimensions:
            sentence = f"{model.handle} answered with {len(values)} numbers; its vectors here have {model.dimensions}"
            raise Internal(sentence, reason="EMBEDDING_INVALID")
        vector = unit_vector(values)
        if vector is None:
            return []
        return await self._rankings.by_vector(scope, model, vector, query.filter, depth(query.limit))


def _with_sides(hit: MessageHit, neighbours: Sequence[Neighbour[UUID]], messages: Mapping[UUID, Message]) -> MessageHit:
    there = [(one.distance, messages[one.key]) for one in neighbours if one.key in messages]
    before, after = ([one for distance, one in there if (distance < 0) is earlier] for earlier in (True, False))
    return replace(hit, before=before, after=after)


def _is_of_any_time(query: MessageQuery) -> bool:
    return query.mode is Mode.HYBRID and query.filter.start is None and query.filter.end is None
