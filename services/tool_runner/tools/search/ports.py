"""The ports of search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.tool_runner.core.model import Tool
from services.tool_runner.tools.search.model import ToolQuery


@dataclass(frozen=True, slots=True)
class ToolVector:
    """A vector of length 1, and the version of the tool that it is of."""

    tool_id: UUID
    version: int
    values: Sequence[float]


class Embedder(Protocol):
    """Embedding models."""

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Returns a vector for each text, in order, all of one length. Raises LociError."""
        ...


class Rankings(Protocol):
    """A tenant's tools, ranked."""

    async def by_words(self, organization_id: UUID, query: ToolQuery) -> list[UUID]:
        """Returns the tools that fit the words of `query.text` best, `query.depth` at most."""
        ...

    async def by_vector(
        self, organization_id: UUID, model: str, vector: Sequence[float], query: ToolQuery
    ) -> list[UUID]:
        """Returns the tools whose vectors of a model are nearest, `query.depth` at most."""
        ...

    async def newest(self, organization_id: UUID, query: ToolQuery) -> list[UUID]:
        """Returns the tools made last, `query.limit` at most, the newest first."""
        ...

    async def tools(self, organization_id: UUID, ids: Sequence[UUID]) -> list[Tool]:
        """Returns those that are there still, in the order asked."""
        ...


class Vectors(Protocol):
    """Vectors of tools."""

    async def missing(self, organization_id: UUID, model: str, most: int) -> list[Tool]:
        """Tools that have no vector of their present version, those changed last first."""
        ...

    async def store(self, organization_id: UUID, model: str, vectors: Sequence[ToolVector]) -> None:
        """Stores vectors; those of tools that are gone, or older than what is there, are left out."""
        ...


class SearchStore(Rankings, Vectors, Protocol):
    """Both, of one catalogue."""
