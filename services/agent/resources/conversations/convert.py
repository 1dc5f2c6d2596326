"""Conversations <-> protobuf."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from loci.agent.v1 import conversation_pb2, conversation_service_pb2
from services.agent.core.messages import system_message_id
from services.agent.resources.agents.convert import pending_approval_to_proto
from services.agent.resources.agents.model.settings import PendingApproval
from services.agent.resources.conversations.model import ConversationSettings, SettingValues, invalid
from services.agent.resources.conversations.ports import ConversationList, ConversationOrder
from services.agent.resources.conversations.service import ConversationState, Fork
from services.common.codec import Codec
from services.common.ids import from_public, optional_id, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_CONVERSATIONS_PER_PAGE = 50
_ORDERS: dict[int, ConversationOrder] = {
    conversation_service_pb2.CONVERSATION_ORDER_LAST_MESSAGE_AT: "last_message_at",
    conversation_service_pb2.CONVERSATION_ORDER_LAST_RUN_COMPLETION: "last_run_completion",
}
_lists = Codec(ConversationList, conversation_service_pb2.ListConversationsRequest, leave=("page", "order", "archived"))
_settings = Codec(ConversationSettings, conversation_pb2.Conversation, refuse=invalid)
_ARCHIVED = {
    conversation_service_pb2.ARCHIVE_STATUS_ARCHIVED: True,
    conversation_service_pb2.ARCHIVE_STATUS_ALL: None,
}


def conversation_to_proto(state: ConversationState) -> conversation_pb2.Conversation:
    """Returns a conversation as clients see it."""
    conversation, window = state.conversation, state.window
    in_context = () if window is None else (system_message_id(conversation.id), *window)
    return _settings.encode(
        conversation.settings,
        id=to_public("conv", conversation.id),
        agent_id=to_public("agent", conversation.agent_id),
        isolated_block_labels=conversation.isolated_labels,
        isolated_block_ids=[to_public("block", each) for each in state.isolated_block_ids],
        in_context_message_ids=[to_public("message", each) for each in in_context],
        created_at=timestamp(conversation.created_at),
        updated_at=timestamp(conversation.updated_at),
        created_by_id=to_public("user", conversation.created_by_id),
        last_updated_by_id=to_public("user", conversation.last_updated_by_id),
    )


def conversation_approval(
    agent_id: UUID, conversation_id: UUID, waiting: PendingApproval
) -> conversation_service_pb2.ConversationApproval:
    """Returns what waits in a conversation; the default one has the agent's id."""
    return conversation_service_pb2.ConversationApproval(
        conversation_id="" if conversation_id == agent_id else to_public("conv", conversation_id),
        approval=pending_approval_to_proto(waiting),
    )


def setting_values(wire: conversation_pb2.Conversation, paths: Iterable[str] | None = None) -> SettingValues:
    """Returns what a client sets: at creation all that is there, in a change what `paths` name.

    Raises Refused (CONVERSATION_INVALID), InvalidArgument (UPDATE_MASK_INVALID).
    """
    return _settings.values(wire, paths)


def conversation_list(request: conversation_service_pb2.ListConversationsRequest) -> ConversationList:
    """Returns which conversations to list. Raises Refused, InvalidArgument."""
    return _lists.decode(
        request,
        page=page_by_id(request.page, "conv", _CONVERSATIONS_PER_PAGE),
        order=_ORDERS.get(request.order_by, "created_at"),
        archived=_ARCHIVED.get(request.archive_status, False),
    )


def fork(request: conversation_service_pb2.ForkConversationRequest) -> Fork:
    """Returns the fork that a request asks for. Raises InvalidArgument (INVALID_ID)."""
    agent_id, source_id = place(request)
    return Fork(
        new_id=new_id(request.new_conversation_id),
        agent_id=agent_id,
        source_id=source_id,
        message_id=optional_id("message", request.message_id),
        hidden=request.hidden,
    )


def place(request: Any) -> tuple[UUID | None, UUID]:
    """Returns the agent, where it is given, and the conversation; the default one has the agent's id.

    Raises InvalidArgument (INVALID_ID).
    """
    if request.conversation_id:
        agent_id = optional_id("agent", request.agent_id)
        return agent_id, from_public("conv", request.conversation_id)
    agent_id = from_public("agent", request.agent_id)
    return agent_id, agent_id


def new_id(text: str) -> UUID:
    """Returns the id that a client minted, or else a new one. Raises InvalidArgument (INVALID_ID)."""
    return from_public("conv", text) if text else uuid7()
