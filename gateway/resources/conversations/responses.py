"""Conversations as REST names and shows them."""

from dataclasses import dataclass
from uuid import UUID

from gateway.peers import Peers
from gateway.resources.agents.responses import Models, model_settings
from gateway.rest.convert import Rest, to_rest
from loci.agent.v1 import conversation_pb2, conversation_service_pb2
from services.common.context import current
from services.common.errors import NotFound

DEFAULT = "default"
_MOST_KNOWN = 100_000


@dataclass(frozen=True)
class ConversationKey:
    """Where something is said: an agent and one of its conversations; its default one has no id (empty)."""

    agent_id: str
    conversation_id: str = ""

    @property
    def run_filter(self) -> str:
        """The conversation's id among runs, where the default one has the agent's UUID."""
        return self.conversation_id or f"conv-{self.agent_id.removeprefix('agent-')}"


class ConversationAgents:
    """The agent of each conversation. It never changes, so what was asked once is kept."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._known: dict[tuple[UUID, str], str] = {}

    async def place(self, conversation_id: str, agent_id: str | None = None) -> ConversationKey:
        """Returns the conversation of a path and a body: `conv-...`; `default` with an agent; (deprecated) `agent-...`.

        Raises NotFound (CONVERSATION_NOT_FOUND). One that was deleted since may still be told.
        """
        if conversation_id.startswith("agent-"):
            return ConversationKey(conversation_id)
        if conversation_id == DEFAULT:
            if agent_id is None:
                sentence = "Conversation not found: give `agent_id` with the conversation `default`"
                raise NotFound(sentence, reason="CONVERSATION_NOT_FOUND")
            return ConversationKey(agent_id)
        return ConversationKey(await self._agent_of(conversation_id.lower()), conversation_id)

    async def _agent_of(self, conversation_id: str) -> str:
        key = current().organization_id, conversation_id
        agent_id = self._known.get(key)
        if agent_id is None:
            request = conversation_service_pb2.GetConversationRequest(
                conversation_id=conversation_id, omit_relations=True
            )
            response = await self._peers.call(self._peers.conversations.GetConversation, request)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            agent_id = self._known[key] = response.conversation.agent_id
        return agent_id


def conversation(message: conversation_pb2.Conversation, models: Models, *, relations: bool = True) -> Rest:
    """Returns the reference's Conversation: 16 fields. Without `relations` those that lists leave out are null."""
    rest = to_rest(message, leave=frozenset({"isolated_block_labels", "hidden"}))
    rest["archived"] = rest["archived_at"] is not None
    if rest["model_settings"] is not None:
        handle = message.model
        rest["model_settings"] = model_settings(handle, rest["model_settings"], models.chat.get(handle))
    if not relations:
        rest |= {"in_context_message_ids": None, "isolated_block_ids": None}
    return rest


def written_conversation(message: conversation_pb2.Conversation, models: Models) -> Rest:
    """Returns the answer of what makes or changes a conversation: its window is not in it, as in the reference."""
    return conversation(message, models) | {"in_context_message_ids": []}
