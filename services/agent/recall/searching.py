"""Search over messages: by words, by meaning, or both."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from services.agent.core.ports_recall import Embedder, EmbeddingModel, Rankings
from services.agent.core.recall.query import (
    MessageHit,
    MessageQuery,
    Mode,
    RankedMessage,
    Scope,
    VectorRanking,
    check_query,
    fuse,
)
from services.common.core.ranking import depth
from services.common.core.vectors import unit_vector
from services.common.errors import Internal, LociError

# A query is short; whoever searches waits for its vector.
EMBED_SECONDS = 2.0
# Vectors are of more than one model only while an agent's is being changed, or where agents differ.
_MOST_MODELS = 4
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})

_log = logging.getLogger(__name__)


class Search:
    """Finds messages. Without an embedder, by words alone.

    vector_weights: what similarities by some models weigh beside words, in a hybrid search; those by others 1.
    """

    def __init__(
        self, rankings: Rankings, embedder: Embedder | None, vector_weights: Mapping[str, float] = NO_WEIGHTS
    ) -> None:
        self._rankings = rankings
        self._embedder = embedder
        self._vector_weights = vector_weights

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
            return await self._rankings.newest(scope, query.filter, query.limit), []
        # A model may take its time; the words are looked for meanwhile.
        (rankings, silent), words = await asyncio.gather(self._nearest(scope, query), self._by_words(scope, query))
        ranked = fuse(rankings, words, query.mode)
        return await self._rankings.found(scope, ranked, query.filter, query.limit), silent

    async def _nearest(self, scope: Scope, query: MessageQuery) -> tuple[list[VectorRanking], list[str]]:
        """Returns a ranking for each model, and the models that did not answer."""
        rankings: list[VectorRanking] = []
        silent: list[str] = []
        for model in await self._models(scope, query.mode):
            weight = self._vector_weights.get(model.handle, 1.0)
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
