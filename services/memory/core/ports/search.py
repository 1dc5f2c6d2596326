"""Rankings of passages, the samples they need, and the peer that embeds and compares texts."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.common.core.neighbours import Neighbour
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part, RankedPassage, Scope
from services.memory.passages.model import PassageFilter, PassageKey


class Rankings(Protocol):
    """Passages in the order in which they answer a question; the best `limit` of those that are wanted."""

    async def by_words(
        self, organization_id: UUID, scope: Scope, query: str, filters: PassageFilter, limit: int
    ) -> list[RankedPassage]:
        """Ranks by BM25, with document frequencies of the scope."""

    async def by_vector(
        self,
        organization_id: UUID,
        part: Part,
        model: EmbeddingModel,
        vector: Sequence[float],
        filters: PassageFilter,
        limit: int,
    ) -> list[RankedPassage]:
        """Ranks by cosine similarity; the part is that of the scope which has vectors of this model."""

    async def neighbours(
        self, organization_id: UUID, keys: Sequence[PassageKey], filters: PassageFilter, steps: int
    ) -> list[Neighbour[PassageKey]]:
        """Returns what stands at most so many steps, and half an hour, before and after each, and is wanted.

        A piece of a file has its neighbours in the file, whenever they were stored.
        """


class SampleStore(Protocol):
    """Samples, kept."""

    async def take(self, organization_id: UUID, scope_id: UUID) -> None:
        """Takes one of an archive, or of all of the tenant, in the place of the last. A sample of nothing is none."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Returns one vector per text, all of one length, by that model. Raises LociError, also after `seconds`."""

    async def check(self, handle: str, seconds: float) -> None:
        """Raises NotFound (EMBEDDING_NOT_FOUND) for a handle that is not configured."""


class SearchModels(Embedder, Protocol):
    """What a search asks: it also compares texts with a query."""

    async def rerank(self, handle: str, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Returns how well each text answers the query, 0 to 1. Raises LociError, also after `seconds`."""
