"""The ports of imports and exports."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.transfers.model import ImportedAgent, ImportedConversation, ImportedGroup, Importer, Log


class ImportWriter(Protocol):
    """Takes what an import stores. All of it is stored at the end, in one transaction."""

    def agent(self, new: ImportedAgent, settings: AgentSettings, log: Log) -> None:
        """A claimed agent with its empty default conversation."""
        ...

    def conversation(self, new: ImportedConversation, labels: Sequence[str], log: Log) -> None:
        """An empty conversation of an agent; `labels`: of the blocks of which it has copies."""
        ...

    def messages(self, log: Log, first_seq: int, messages: Sequence[Message]) -> None:
        """Appends to the log of a conversation, from `first_seq` on."""
        ...

    def head(self, log: Log) -> None:
        """The head of a conversation. Once, at the end."""
        ...

    def group(self, new: ImportedGroup) -> None:
        """A group."""
        ...


class TransferStore(Protocol):
    """Agents on their way in and out."""

    def open_writer(self, importer: Importer) -> AbstractAsyncContextManager[ImportWriter]:
        """Returns a writer, whose things are stored when it is left without an error.

        Raises AlreadyExists (IMPORT_EXISTS) for an id that is taken, NotFound (IDENTITY_NOT_FOUND).
        """
        ...

    async def claim(self, importer: Importer, agent_id: UUID) -> bool:
        """Makes a new agent this import's alone; False while it is another's.

        Raises AlreadyExists (IMPORT_EXISTS) when the agent is there.
        """
        ...

    async def renew(self, importer: Importer, agent_ids: Sequence[UUID]) -> Sequence[UUID]:
        """Keeps claims for another minute; returns those that are still its own."""
        ...

    async def release(self, importer: Importer, agent_id: UUID) -> None:
        """Gives a claim back: nothing of the agent is left."""
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
