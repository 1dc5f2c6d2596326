"""The ports of conversations: their store, their eraser, and their copies of blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from services.agent.core.page_tokens import Place
from services.agent.resources.agents.model.settings import PendingApproval
from services.agent.resources.conversations.model import Conversation, ConversationSettings
from services.common.core.paging import Page, PageOf

ConversationOrder = Literal["created_at", "last_message_at", "last_run_completion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationList:
    """A filter of conversations; see loci.agent.v1.ListConversationsRequest. `archived` None: both kinds."""

    page: Page
    order: ConversationOrder = "created_at"
    agent_id: UUID | None = None
    archived: bool | None = False
    summary_search: str | None = None
    show_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """A conversation to store. Its copies of blocks were made under a reservation, which must still be there."""

    organization_id: UUID
    id: UUID
    agent_id: UUID
    user_id: UUID
    isolated_labels: tuple[str, ...] = ()


class ConversationStore(Protocol):
    """Conversations of a tenant, without default ones. Deleted ones, and those of deleted agents, are not there."""

    async def reserve(self, new: NewConversation) -> bool:
        """Notes that copies of blocks will be made, swept when no conversation follows. False: the id is taken."""
        ...

    async def release(self, new: NewConversation) -> None:
        """Takes a reservation back: no copies were made."""
        ...

    async def insert(self, new: NewConversation, settings: ConversationSettings) -> Conversation | None:
        """Stores a conversation with a log of its own; None when the id is taken or the reservation gone."""
        ...

    async def fork(
        self, new: NewConversation, source_id: UUID, cut: Place | None, *, hidden: bool
    ) -> Conversation | None:
        """Stores a conversation that begins with another's messages, up to `cut` (None: all), and has its settings.

        None when the id is taken, the reservation or the source gone.
        """
        ...

    async def place(self, organization_id: UUID, conversation_id: UUID, message_id: UUID) -> Place:
        """Returns the place of a message in a conversation. Raises NotFound (MESSAGE_NOT_FOUND)."""
        ...

    async def get(self, organization_id: UUID, conversation_id: UUID) -> Conversation:
        """Raises NotFound (CONVERSATION_NOT_FOUND)."""
        ...

    async def window(self, organization_id: UUID, conversation_id: UUID) -> tuple[UUID, ...]:
        """Returns the messages that a turn would begin with, oldest first."""
        ...

    async def list(self, organization_id: UUID, filters: ConversationList) -> PageOf[Conversation]:
        """One page. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def waiting(self, organization_id: UUID, agent_id: UUID) -> Sequence[tuple[UUID, PendingApproval]]:
        """Calls that wait for the client in an agent's conversations, the default one too, soonest due first."""
        ...

    async def update(
        self, organization_id: UUID, user_id: UUID, conversation_id: UUID, values: Mapping[str, Any]
    ) -> Conversation:
        """Writes these settings and no others. Raises NotFound (CONVERSATION_NOT_FOUND)."""
        ...

    async def delete(self, organization_id: UUID, conversation_id: UUID, user_id: UUID) -> None:
        """Marks it deleted, cancels its runs and orders the rest. Raises NotFound (CONVERSATION_NOT_FOUND)."""
        ...


class ConversationEraser(Protocol):
    """Removes what is left of deleted conversations."""

    async def exists(self, organization_id: UUID, conversation_id: UUID) -> bool:
        """Returns whether there is such a conversation, deleted or not."""
        ...

    async def stop(self, organization_id: UUID, conversation_id: UUID) -> bool:
        """Asks its runs to stop; whether none is running any more."""
        ...

    async def erase(self, organization_id: UUID, conversation_id: UUID) -> bool:
        """Erases it with its runs and the messages that no other conversation shows; False while one of its runs has
        not stopped. May be repeated.
        """
        ...


class ConversationMemories(Protocol):
    """A conversation's own copies of blocks, in the memory service."""

    async def isolate(
        self, agent_id: UUID, conversation_id: UUID, labels: tuple[str, ...], source_id: UUID | None = None
    ) -> tuple[UUID, ...]:
        """Copies the agent's blocks, or a conversation's copies of them; returns the copies. May be repeated.

        Raises NotFound (BLOCK_NOT_FOUND), then nothing was copied.
        """
        ...

    async def isolated_block_ids(self, agent_id: UUID, conversation_id: UUID) -> tuple[UUID, ...]:
        """Returns the copies that a conversation has."""
        ...

    async def purge_conversation(self, agent_id: UUID, conversation_id: UUID) -> None:
        """Erases the copies. May be repeated."""
        ...
