"""The ports of stored messages, of histories, and of system prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.page_tokens import MessagePage
from services.agent.resources.agents.model.settings import Agent
from services.common.core.paging import PageOf


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """A conversation in whose place in a list its compiled prompt is shown."""

    conversation_id: UUID
    agent_id: UUID
    created_at: datetime


class MessageStore(Protocol):
    """The messages of a tenant's agents; those of agents that are deleted are not there."""

    async def all(
        self, organization_id: UUID, page: MessagePage, agent_id: UUID | None = None
    ) -> PageOf[Message | PromptPlace]:
        """Returns one page, of one agent or of all, by when they were stored; a prompt, by when its conversation began.

        Raises NotFound (MESSAGE_NOT_FOUND) for an unknown cursor, Refused (PAGE_TOKEN_INVALID).
        """
        ...

    async def find(self, organization_id: UUID, message_id: UUID) -> Message | None:
        """Returns the message that is shown under this id."""
        ...

    async def find_prompt(self, organization_id: UUID, message_id: UUID) -> tuple[UUID, UUID] | None:
        """Returns the agent and the conversation whose compiled prompt is shown under this id."""
        ...

    async def revise(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        message_id: UUID,
        change: Callable[[Message], Message],
    ) -> Message:
        """Stores what `change` makes of a message, and keeps what it was. Its vector follows.

        Raises NotFound (AGENT_NOT_FOUND, MESSAGE_NOT_FOUND), and what `change` raises.
        """
        ...

    async def add(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID, messages: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Adds messages to the end of a conversation, as they are there then; ids that are taken add nothing.

        Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND).
        """
        ...


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its agent, as far as the list of its messages needs them."""

    id: UUID
    agent: Agent
    created_at: datetime
    # Whether its agent has others.
    has_siblings: bool


class Prompts(Protocol):
    """System prompts for those who look at a conversation from outside."""

    async def stored(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        """Returns the text that the model was last given, or would be given after the edits of blocks since then in the
        default conversation. Stores it where it is a new one.
        """
        ...

    async def compiled(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        """Returns the text that the next turn would be given; stores nothing."""
        ...

    async def rewrite(self, organization_id: UUID, agent: Agent, conversation_id: UUID) -> str:
        """Compiles the text anew and stores it. Returns it."""
        ...


class History(Protocol):
    """Stored messages of a tenant."""

    async def conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> Conversation:
        """Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND)."""
        ...

    async def messages(
        self, organization_id: UUID, conversation_id: UUID, page: MessagePage, *, ignore_unknown_cursors: bool = False
    ) -> PageOf[Message | None]:
        """Returns one page; None stands for the system message, the oldest one.

        Raises NotFound (MESSAGE_NOT_FOUND) for an unknown cursor, or ignores it; Refused (PAGE_TOKEN_INVALID).
        """
        ...
