"""Vectors of messages whose text was changed, one by one: the log's mark is past them already."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.ports_recall import Embedder
from services.agent.core.recall.texts import embedding_text
from services.agent.recall.filling import EMBED_SECONDS
from services.agent.resources.outbox.ports import OutboxEntry
from services.common.core.vectors import unit_vector
from services.common.errors import InvalidArgument

# Of its orders; the subject is a message.
KIND = "embed_message"


class MessageVectorStore(Protocol):
    """One message and its vector."""

    async def message_to_embed(self, organization_id: UUID, message_id: UUID) -> tuple[Message, str] | None:
        """Returns a message, and the embedding model of its agent; None where either is gone."""
        ...

    async def keep(self, organization_id: UUID, handle: str, message_id: UUID, vector: Sequence[float]) -> None:
        """Stores its vector. May be repeated."""
        ...


class MessageEmbedding:
    """Delivers orders for vectors. `embedder` None: messages are found by their words alone."""

    def __init__(self, store: MessageVectorStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    async def deliver(self, order: OutboxEntry) -> bool:
        """Always done, or it raises LociError: try again."""
        stored = await self._store.message_to_embed(order.organization_id, order.subject_id)
        if stored is None or self._embedder is None or not (text := embedding_text(stored[0])):
            return True
        try:
            vectors = await self._embedder.embed(stored[1], [text], EMBED_SECONDS)
        except InvalidArgument:
            # What the model refuses is found by its words.
            return True
        if (vector := unit_vector(vectors[0])) is not None:
            await self._store.keep(order.organization_id, stored[1], order.subject_id, vector)
        return True
