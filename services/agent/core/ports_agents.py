"""The ports of agents that speak to agents. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.agent.core.messages import Call, Return
from services.agent.core.ports import CallSite

ASK, TELL, ASK_TAGGED = (
    "send_message_to_agent_and_wait_for_reply",
    "send_message_to_agent_async",
    "send_message_to_agents_matching_tags",
)
AGENT_TOOLS = frozenset({ASK, TELL, ASK_TAGGED})


@dataclass(frozen=True, slots=True)
class AgentName:
    """An agent as others are told of it."""

    id: UUID
    name: str


class AgentCalls(Protocol):
    """The tools by which agents speak to agents."""

    async def call(self, call: Call, site: CallSite) -> Return:
        """Runs one of them at most once under the call's key, and waits for what it waits for. Raises LociError."""
        ...

    async def cancel(self, call: Call, site: CallSite) -> None:
        """Cancels the runs that a call waits for."""
        ...


class AgentDirectory(Protocol):
    """The agents of a tenant, found by their tags."""

    async def tagged(
        self, organization_id: UUID, match_all: Sequence[str], match_some: Sequence[str], most: int
    ) -> list[AgentName]:
        """Returns the oldest `most` agents with all the tags of `match_all` and, where there are any, one of
        `match_some`; hidden ones too.
        """
        ...
