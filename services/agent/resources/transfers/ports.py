"""The ports of imports and exports."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.transfers.model import ImportedAgent, ImportedConversation, ImportedGroup, Log


class ImportWriter(Protocol):
    """One transaction. Raises AlreadyExists (IMPORT_EXISTS) for an id that is taken."""

    async def agent(self, new: ImportedAgent, settings: AgentSettings, log: Log) -> bool:
        """Stores a reserved agent with its empty default conversation; False when the reservation is gone.

        Raises NotFound (IDENTITY_NOT_FOUND).
        """
        ...

    async def conversation(self, new: ImportedConversation, labels: Sequence[str], log: Log) -> None:
        """An empty conversation of an agent; `labels`: of the blocks of which it has copies."""
        ...

    async def messages(self, log: Log, first_seq: int, messages: Sequence[Message]) -> None:
        """Appends to the log of a conversation, from `first_seq` on."""
        ...

    async def head(self, log: Log) -> None:
        """Stores the head of a conversation. Once, at the end."""
        ...

    async def group(self, new: ImportedGroup) -> None:
        """A group."""
        ...


class TransferStore(Protocol):
    """Agents on their way in and out."""

    def open_writer(self, organization_id: UUID, user_id: UUID) -> AbstractAsyncContextManager[ImportWriter]:
        """Returns a transaction, committed when it is left without an error."""
        ...

    async def find(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Sequence[UUID]:
        """Returns those that are there."""
        ...

    async def window(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> Sequence[Message]:
        """Returns a window, the summary first. Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND)."""
        ...

    def history(self, organization_id: UUID, conversation_id: UUID) -> AsyncIterator[Message]:
        """Yields all that was said in a conversation, oldest first."""
        ...


class TransferMemories(Protocol):
    """Archives and isolated blocks in the memory service. Every call may be repeated."""

    async def attach_archive(self, agent_id: UUID, archive_id: UUID) -> None:
        """The first becomes the agent's own. Raises NotFound (ARCHIVE_NOT_FOUND)."""
        ...

    async def adopt(self, agent_id: UUID, conversation_id: UUID, block_ids: Sequence[UUID]) -> tuple[str, ...]:
        """Makes blocks a conversation's own; their labels. Raises NotFound (BLOCK_NOT_FOUND)."""
        ...
