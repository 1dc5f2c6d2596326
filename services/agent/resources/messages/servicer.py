"""Stored messages as they are read and changed one by one; MessageService has it from here."""

from functools import partial
from typing import Any
from uuid import UUID

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.messages import messages_to_proto, system_message_to_proto
from services.agent.core.messages import Message, system_message_id
from services.agent.resources.messages.convert import captured_messages, new_text
from services.agent.resources.messages.model import edit
from services.agent.resources.messages.ports import CompiledPrompts, Conversation, History, MessageStore
from services.agent.resources.messages.service import message_not_found
from services.common.context import current
from services.common.core.refusals import Refused
from services.common.ids import from_public
from services.common.page_requests import page_by_id

_MESSAGES_PER_PAGE = 100


class StoredMessageRpcs:
    """MessageService.ListMessages, ListAllMessages, GetMessage, UpdateMessage and CaptureMessages."""

    def __init__(self, stored: MessageStore, history: History, prompts: CompiledPrompts) -> None:
        self._stored = stored
        self._history = history
        self._prompts = prompts

    async def ListAllMessages(self, request: wire.ListAllMessagesRequest, context: Any) -> wire.ListAllMessagesResponse:
        """Returns one page of the tenant's."""
        page = page_by_id(request.page, "message", _MESSAGES_PER_PAGE)
        stored = await self._stored.all(current().organization_id, page)
        messages = [piece for message in stored.items for piece in messages_to_proto(message)]
        return wire.ListAllMessagesResponse(messages=messages, next_page_token=stored.next_token)

    async def GetMessage(self, request: wire.GetMessageRequest, context: Any) -> wire.GetMessageResponse:
        """Returns a row, or a prompt that is compiled for whoever asks."""
        organization_id, message_id = current().organization_id, from_public("message", request.message_id)
        message = await self._stored.find(organization_id, message_id)
        if message is not None:
            return wire.GetMessageResponse(messages=messages_to_proto(message))
        place = await self._stored.find_prompt(organization_id, message_id)
        if place is None:
            raise message_not_found(message_id)
        conversation = await self._history.conversation(organization_id, *place)
        prompt = await self._prompts.compiled_prompt(organization_id, conversation.agent, conversation.id)
        return wire.GetMessageResponse(
            messages=[system_message_to_proto(conversation.id, prompt, conversation.created_at)]
        )

    async def UpdateMessage(self, request: wire.UpdateMessageRequest, context: Any) -> wire.UpdateMessageResponse:
        """Replaces the text of a message, in its place."""
        caller = current()
        agent_id, message_id = from_public("agent", request.agent_id), from_public("message", request.message_id)
        kind, content = new_text(request)
        _check_stored(agent_id, message_id)
        message = await self._stored.revise(
            caller.organization_id, caller.user_id, agent_id, message_id, partial(_edited, kind, content)
        )
        return wire.UpdateMessageResponse(messages=messages_to_proto(message))

    async def CaptureMessages(self, request: wire.CaptureMessagesRequest, context: Any) -> wire.CaptureMessagesResponse:
        """Stores an exchange that happened elsewhere."""
        agent_id = from_public("agent", request.agent_id)
        conversation_id = from_public("conv", request.conversation_id) if request.conversation_id else agent_id
        messages = captured_messages(request)
        stored = await self._stored.add(current().organization_id, agent_id, conversation_id, messages)
        return wire.CaptureMessagesResponse(messages=[piece for one in stored for piece in messages_to_proto(one)])

    async def ListMessages(self, request: wire.ListMessagesRequest, context: Any) -> wire.ListMessagesResponse:
        """Returns one page. The system message, the oldest one, is compiled only where it is shown."""
        organization_id = current().organization_id
        agent_id = from_public("agent", request.agent_id)
        named = request.conversation_id
        conversation_id = from_public("conv", named) if named else agent_id
        page = page_by_id(request.page, "message", _MESSAGES_PER_PAGE)
        conversation = await self._history.conversation(organization_id, agent_id, conversation_id)
        messages = await self._history.messages(organization_id, conversation_id, page)
        response = wire.ListMessagesResponse(next_page_token=messages.next_token)
        for message in messages.items:
            response.messages.extend(await self._shown(message, conversation))
        return response

    async def _shown(self, message: Message | None, conversation: Conversation) -> list[message_pb2.Message]:
        if message is not None:
            return messages_to_proto(message)
        prompt = await self._prompts.compiled_prompt(current().organization_id, conversation.agent, conversation.id)
        return [system_message_to_proto(conversation.id, prompt, conversation.created_at)]


def _edited(kind: Any, content: Any, message: Message) -> Message:
    return edit(message, kind, content)


def _check_stored(agent_id: UUID, message_id: UUID) -> None:
    if message_id == system_message_id(agent_id):
        sentence = (
            "the first message is the compiled prompt and does not change by itself: change the agent's `system`, or a "
            "block"
        )
        raise Refused("MESSAGE_INVALID", sentence)
