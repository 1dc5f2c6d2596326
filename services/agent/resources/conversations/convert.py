"""Conversations <-> protobuf."""

from datetime import UTC
from typing import Any
from uuid import UUID

import orjson

from loci.agent.v1 import conversation_pb2, conversation_service_pb2
from services.agent.core.messages import system_message_id
from services.agent.resources.agents.model.drafts import json_object
from services.agent.resources.conversations.model import ConversationDraft
from services.agent.resources.conversations.ports import ConversationList, ConversationOrder
from services.agent.resources.conversations.service import DescribedConversation, Fork
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.refusals import Refused
from services.common.timestamps import timestamp

_CONVERSATIONS_PER_PAGE = 50
_JSON = "_json"
_ORDERS: dict[int, ConversationOrder] = {
    conversation_service_pb2.CONVERSATION_ORDER_LAST_MESSAGE_AT: "last_message_at",
    conversation_service_pb2.CONVERSATION_ORDER_LAST_RUN_COMPLETION: "last_run_completion",
}
_ARCHIVED = {
    conversation_service_pb2.ARCHIVE_STATUS_ARCHIVED: True,
    conversation_service_pb2.ARCHIVE_STATUS_ALL: None,
}


def conversation_to_proto(described: DescribedConversation) -> conversation_pb2.Conversation:
    """A conversation as clients see it."""
    conversation, settings = described.conversation, described.conversation.settings
    window = described.window
    wire = conversation_pb2.Conversation(
        id=to_public("conv", conversation.id),
        agent_id=to_public("agent", conversation.agent_id),
        summary=settings.summary,
        description=settings.description,
        model=settings.model,
        model_settings_json=None if settings.model_settings is None else orjson.dumps(settings.model_settings).decode(),
        context_window_limit=settings.context_window_limit,
        isolated_block_labels=conversation.isolated_labels,
        isolated_block_ids=[to_public("block", each) for each in described.isolated_block_ids],
        hidden=settings.hidden,
        created_at=timestamp(conversation.created_at),
        updated_at=timestamp(conversation.updated_at),
        created_by_id=to_public("user", conversation.created_by_id),
        last_updated_by_id=to_public("user", conversation.last_updated_by_id),
    )
    if window is not None:
        in_context = (system_message_id(conversation.id), *window)
        wire.in_context_message_ids.extend(to_public("message", each) for each in in_context)
    if settings.archived_at is not None:
        wire.archived_at.CopyFrom(timestamp(settings.archived_at))
    if settings.last_message_at is not None:
        wire.last_message_at.CopyFrom(timestamp(settings.last_message_at))
    return wire


def draft(wire: conversation_service_pb2.ConversationDraft) -> ConversationDraft:
    """What a client sets. Raises Refused (CONVERSATION_INVALID), InvalidArgument (TIME_INVALID)."""
    given: dict[str, Any] = {field.name: value for field, value in wire.ListFields()}
    if (settings := given.pop("model_settings_json", None)) is not None:
        given["model_settings"] = _json_object(settings)
    if wire.HasField("last_message_at"):
        try:
            given["last_message_at"] = wire.last_message_at.ToDatetime(tzinfo=UTC)
        except ValueError:
            sentence = "last_message_at must be in the years 1 to 9999"
            raise InvalidArgument(sentence, reason="TIME_INVALID") from None
    return ConversationDraft(**given)


def mask(request: conversation_service_pb2.UpdateConversationRequest) -> tuple[str, ...]:
    """Names of the settings that an update changes."""
    return tuple(name.removesuffix(_JSON) for name in request.update_mask.paths)


def conversation_list(request: conversation_service_pb2.ListConversationsRequest) -> ConversationList:
    """Which conversations to list. Raises Refused, InvalidArgument."""
    return ConversationList(
        page=page_by_id(request.page, "conv", _CONVERSATIONS_PER_PAGE),
        order=_ORDERS.get(request.order_by, "created_at"),
        agent_id=from_public("agent", request.agent_id) if request.agent_id else None,
        archived=_ARCHIVED.get(request.archive_status, False),
        summary_search=request.summary_search if request.HasField("summary_search") else None,
        show_hidden=request.show_hidden,
    )


def fork(request: conversation_service_pb2.ForkConversationRequest) -> Fork:
    """What to fork. Raises InvalidArgument (INVALID_ID)."""
    agent_id, source_id = place(request)
    return Fork(
        new_id=new_id(request.new_conversation_id),
        agent_id=agent_id,
        source_id=source_id,
        message_id=from_public("message", request.message_id) if request.message_id else None,
        hidden=request.hidden,
    )


def place(request: Any) -> tuple[UUID | None, UUID]:
    """The agent, where it is given, and the conversation; the default one has the agent's id.

    Raises InvalidArgument (INVALID_ID).
    """
    if request.conversation_id:
        agent_id = from_public("agent", request.agent_id) if request.agent_id else None
        return agent_id, from_public("conv", request.conversation_id)
    agent_id = from_public("agent", request.agent_id)
    return agent_id, agent_id


def new_id(given: str) -> UUID:
    """The id that a client minted, or else a new one. Raises InvalidArgument (INVALID_ID)."""
    return from_public("conv", given) if given else uuid7()


def _json_object(text: str) -> Any:
    try:
        return json_object("model_settings", text)
    except Refused as refused:
        raise Refused("CONVERSATION_INVALID", refused.message) from None
