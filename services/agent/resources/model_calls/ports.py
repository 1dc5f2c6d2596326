"""The ports of model calls outside of turns."""

from typing import Protocol
from uuid import UUID

from services.agent.core.facts import Options
from services.agent.core.messages import Message
from services.agent.core.ports import ModelRequest
from services.agent.core.ports_journal import OwnedRun


class Peeks(Protocol):
    """Runs that are not begun."""

    async def peek(
        self,
        organization_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        messages: tuple[Message, ...] = (),
        options: Options | None = None,
    ) -> OwnedRun:
        """Returns what a run of a request would begin with now. Stores nothing and enters no line.

        Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND).
        """
        ...


class Renderer(Protocol):
    """The model gateway, as it would ask."""

    async def render(self, request: ModelRequest) -> str:
        """Returns the body that the provider would be sent, JSON text. Raises LociError."""
        ...
