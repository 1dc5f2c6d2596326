"""The list of stored messages; MessageService has it from here."""

from typing import Any

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.admin.ports_admin import CompiledPrompts, Conversation, History
from services.agent.convert.messages import messages_to_proto, system_message_to_proto
from services.agent.messages import Message
from services.agent.servicer.refusals import refusals
from services.common.context import current
from services.common.ids import from_public
from services.common.page_requests import page_by_id

_MESSAGES_PER_PAGE = 100


class MessageLists:
    """MessageService.ListMessages."""

    def __init__(self, history: History, prompts: CompiledPrompts) -> None:
        self._history = history
        self._prompts = prompts

    async def ListMessages(self, request: wire.ListMessagesRequest, context: Any) -> wire.ListMessagesResponse:
        """One page. The system message, the oldest one, is compiled only where it is shown."""
        organization_id = current().organization_id
        agent_id = from_public("agent", request.agent_id)
        named = request.conversation_id
        conversation_id = from_public("conv", named) if named else agent_id
        with refusals():
            wanted = page_by_id(request.page, "message", _MESSAGES_PER_PAGE)
            conversation = await self._history.conversation(organization_id, agent_id, conversation_id)
            found = await self._history.messages(organization_id, conversation_id, wanted)
        response = wire.ListMessagesResponse(next_page_token=found.next_token)
        for message in found.items:
            response.messages.extend(await self._shown(message, conversation))
        return response

    async def _shown(self, message: Message | None, conversation: Conversation) -> list[message_pb2.Message]:
        if message is not None:
            return messages_to_proto(message)
        prompt = await self._prompts.compiled_prompt(current().organization_id, conversation.agent, conversation.id)
        return [system_message_to_proto(conversation.id, prompt, conversation.created_at)]
