"""What conversations with blocks of their own and journeys through versions need from outside."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from services.memory.model import Block


class CopyStore(Protocol):
    """Blocks that are made out of others. Every method is all or nothing."""

    async def isolate(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        labels: Sequence[str],
        source_conversation_id: UUID | None,
    ) -> list[Block]:
        """The conversation's copies in the order of `labels`, made where they are missing.

        Raises NotFound (BLOCK_NOT_FOUND) for a label that neither the agent nor the conversation has.
        """

    async def purge_conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> None:
        """Erases the conversation's copies."""
