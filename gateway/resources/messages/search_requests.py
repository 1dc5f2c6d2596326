"""What is searched for among messages."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.rest.body import Body
from gateway.rest.params import AgentInBody, Moment, conversation_ref
from loci.agent.v1 import message_service_pb2
from services.common.timestamps import timestamp

_MODES = {
    "hybrid": message_service_pb2.MESSAGE_SEARCH_MODE_HYBRID,
    "vector": message_service_pb2.MESSAGE_SEARCH_MODE_VECTOR,
    "fts": message_service_pb2.MESSAGE_SEARCH_MODE_TEXT,
}
Role = Literal["user", "assistant", "system", "tool"]
# What the four shapes of results can show.
_SHOWN: tuple[Role, ...] = ("user", "assistant", "system")


class SearchMessages(Body):
    """Body of messages.search. `roles` is Loci's: with `tool`, returns of tools are results, too."""

    query: Annotated[str, Field(max_length=10_000)]
    search_mode: Literal["vector", "fts", "hybrid"] = "hybrid"
    agent_id: AgentInBody = None
    conversation_id: Annotated[str | None, AfterValidator(lambda value: value and conversation_ref(value))] = None
    start_date: Moment | None = None
    end_date: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    roles: list[Role] | None = None

    def request(self) -> message_service_pb2.SearchMessagesRequest:
        """For the agent service. More than the limit: calls are found, and not shown."""
        conversation_id = self.conversation_id or ""
        if conversation_id == "default":
            # Of an agent that is named beside it; of all agents it is no one conversation.
            conversation_id = self.agent_id or ""
        return message_service_pb2.SearchMessagesRequest(
            agent_id=self.agent_id or "",
            conversation_id=conversation_id,
            query=self.query,
            mode=_MODES[self.search_mode],
            roles=self.roles or _SHOWN,
            limit=min(2 * self.limit + 10, 1_000),
            start_time=timestamp(self.start_date),
            end_time=timestamp(self.end_date),
        )


class WarmCache(Body):
    """Body of _internal_search/cache-warm."""

    collection: str = "messages"
