"""Stored messages as they are read and changed one by one; MessageService has it from here."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.convert.messages import messages_to_proto, system_message_to_proto
from services.agent.core.messages import Message, system_message_id
from services.agent.core.page_tokens import MessagePage
from services.agent.resources.messages.convert import captured_messages, message_page, new_text
from services.agent.resources.messages.model import edit
from services.agent.resources.messages.ports import History, MessageStore, PromptPlace, Prompts
from services.agent.resources.messages.service import message_not_found
from services.common.context import current
from services.common.core.refusals import Refused
from services.common.ids import from_public


class StoredMessageRpcs:
    """MessageService.ListMessages, ListAllMessages, GetMessage, UpdateMessage and CaptureMessages."""

    def __init__(self, stored: MessageStore, history: History, prompts: Prompts) -> None:
        self._stored = stored
        self._history = history
        self._prompts = prompts

    async def ListAllMessages(self, request: wire.ListAllMessagesRequest, context: Any) -> wire.ListAllMessagesResponse:
        """Returns one page of the tenant's."""
        page = message_page(request.page)
        stored = await self._stored.all(current().organization_id, page)
        messages = await self._shown(_turned(stored.items, page, request.oldest_first))
        return wire.ListAllMessagesResponse(messages=messages, next_page_token=stored.next_token)

    async def GetMessage(self, request: wire.GetMessageRequest, context: Any) -> wire.GetMessageResponse:
        """Returns a row, or the prompt of a conversation."""
        organization_id, message_id = current().organization_id, from_public("message", request.message_id)
        message = await self._stored.find(organization_id, message_id)
        if message is not None:
            return wire.GetMessageResponse(messages=messages_to_proto(message))
        place = await self._stored.find_prompt(organization_id, message_id)
        if place is None:
            raise message_not_found(message_id)
        return wire.GetMessageResponse(messages=[await self._prompt(*place)])

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
        """Returns one page. The system message is the oldest one."""
        organization_id = current().organization_id
        agent_id = from_public("agent", request.agent_id)
        named, page = request.conversation_id, message_page(request.page)
        conversation_id = agent_id if named in ("", request.agent_id) else from_public("conv", named)
        conversation = await self._history.conversation(organization_id, agent_id, conversation_id)
        items: Sequence[Message | PromptPlace]
        if not named and conversation.has_siblings:
            listed = await self._stored.all(organization_id, page, agent_id)
            items, token = listed.items, listed.next_token
        else:
            # By position, which holds for messages of the same moment, too.
            own = await self._history.messages(
                organization_id, conversation_id, page, ignore_unknown_cursors=request.ignore_unknown_cursors
            )
            prompt = PromptPlace(conversation_id, agent_id, conversation.created_at)
            items, token = [prompt if one is None else one for one in own.items], own.next_token
        messages = await self._shown(_turned(items, page, request.oldest_first))
        return wire.ListMessagesResponse(messages=messages, next_page_token=token)

    async def _shown(self, items: Iterable[Message | PromptPlace]) -> list[message_pb2.Message]:
        messages: list[message_pb2.Message] = []
        for item in items:
            if isinstance(item, PromptPlace):
                messages.append(await self._prompt(item.agent_id, item.conversation_id))
            else:
                messages.extend(messages_to_proto(item))
        return messages

    async def _prompt(self, agent_id: UUID, conversation_id: UUID) -> message_pb2.Message:
        organization_id = current().organization_id
        conversation = await self._history.conversation(organization_id, agent_id, conversation_id)
        prompt = await self._prompts.stored(organization_id, conversation.agent, conversation_id)
        return system_message_to_proto(conversation_id, prompt, conversation.created_at)


def _turned(
    items: Sequence[Message | PromptPlace], page: MessagePage, oldest_first: bool
) -> Sequence[Message | PromptPlace]:
    return items[::-1] if oldest_first and not page.ascending else items


def _edited(kind: Any, content: Any, message: Message) -> Message:
    return edit(message, kind, content)


def _check_stored(agent_id: UUID, message_id: UUID) -> None:
    if message_id == system_message_id(agent_id):
        sentence = (
            "the first message is the compiled prompt and does not change by itself: change the agent's `system`, or a "
            "block"
        )
        raise Refused("MESSAGE_INVALID", sentence)
