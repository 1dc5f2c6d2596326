"""The ports of recall, as Protocols. Adapters implement them (adapters/recall/)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.recall.query import MessageFilter, MessageHit, RankedMessage, Scope
from services.common.core.fusion import FusedScore
from services.common.core.neighbours import Neighbour


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that vectors are of; `id` is this database's own."""

    id: int
    handle: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class LogKey:
    """A log of messages."""

    organization_id: UUID
    log_id: UUID


@dataclass(frozen=True, slots=True)
class LogClaim:
    """A log that this replica reads for vectors, for a while: what is behind `seq` has theirs. `taken` tells who."""

    key: LogKey
    agent_id: UUID
    embedding: str
    seq: int
    taken: int
    failures: int


@dataclass(frozen=True, slots=True)
class LogProgress:
    """The position up to which a log was read, and the vectors of messages in it."""

    log: LogClaim
    seq: int
    vectors: Mapping[UUID, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Page:
    """Logs that lack vectors, of those looked at; `ended`: those were the last."""

    due: tuple[LogKey, ...]
    ended: bool


class Embedder(Protocol):
    """Embedding models."""

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Returns a vector for each text, in order, all of one length. Raises LociError."""
        ...


class Rankings(Protocol):
    """Messages, ranked and found."""

    async def scope(self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID | None) -> Scope:
        """Returns where to search. Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND)."""
        ...

    async def models(self, scope: Scope) -> Sequence[EmbeddingModel]:
        """Returns the models that messages of a scope have vectors of."""
        ...

    async def by_words(self, scope: Scope, text: str, filters: MessageFilter, limit: int) -> list[RankedMessage]:
        """Returns the messages that fit the words best."""
        ...

    async def by_vector(
        self, scope: Scope, model: EmbeddingModel, vector: Sequence[float], filters: MessageFilter, limit: int
    ) -> list[RankedMessage]:
        """Returns the messages whose vectors of a model are nearest."""
        ...

    async def newest(self, scope: Scope, filters: MessageFilter, limit: int) -> list[MessageHit]:
        """Returns the messages made last, the newest first."""
        ...

    async def beginnings(self, text: str) -> Sequence[Sequence[str]]:
        """Returns what words that fit a text begin with, in lower case: its stems, then the words as they are."""
        ...

    async def found(
        self, scope: Scope, ranked: Sequence[FusedScore[UUID]], filters: MessageFilter, limit: int
    ) -> list[MessageHit]:
        """Returns the first messages of a ranking that are there still and count, in its order."""
        ...

    async def neighbours(
        self, scope: Scope, message_ids: Sequence[UUID], filters: MessageFilter, steps: int
    ) -> list[Neighbour[UUID]]:
        """Returns what was said at most so many counting messages, and half an hour, before and after each."""
        ...


class VectorStore(Protocol):
    """Logs that lack vectors, and vectors."""

    async def logs_of(self, conversations: Sequence[tuple[UUID, UUID]]) -> list[LogKey]:
        """Returns the logs that conversations, given with their tenants, go on in."""
        ...

    async def sweep(self) -> Page | None:
        """Looks at some more logs; None while that is not due, or another replica does."""
        ...

    async def take(self, logs: Sequence[LogKey]) -> list[LogClaim]:
        """Takes those of the logs that nobody has, for LEASE_SECONDS."""
        ...

    async def messages(self, taken: Sequence[LogClaim], most: int) -> dict[LogKey, list[Message]]:
        """Returns what comes next in each log, `most` messages of each, without pictures."""
        ...

    async def store(self, handle: str, done: Sequence[LogProgress]) -> None:
        """Moves the marks of logs of one tenant and stores their vectors, in one transaction.

        What another replica has taken since is left out.
        """
        ...

    async def fail(self, taken: Sequence[LogClaim]) -> None:
        """Gives logs back, to be tried again after a pause that grows with each failure."""
        ...
