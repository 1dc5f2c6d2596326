"""Conversations: what clients set on them, and what they say in them."""

from datetime import UTC, datetime

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.resources.messages.requests import Compact, SendMessages
from gateway.rest.body import Body, Json
from gateway.rest.params import AgentInBody
from gateway.rest.request_model import RequestModel
from loci.agent.v1 import conversation_pb2, conversation_service_pb2
from services.common.fields import When
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp

# What a null means something for: what was set is set no more.
_CLEARED_BY_NULL = frozenset({"summary", "description", "model", "model_settings", "context_window_limit"})


class CreateConversation(
    RequestModel,
    of=conversation_pb2.Conversation,
    when=When.CREATION,
    leave=("archived_at", "last_message_at"),
):
    """Body of conversations.create."""

    model: str | None = None
    # Of the blocks of which it gets copies of its own.
    isolated_block_labels: list[str] | None = None


class UpdateConversation(
    RequestModel, of=conversation_pb2.Conversation, when=When.CHANGE, leave=("archived_at", "hidden")
):
    """Body of conversations.update: only what is sent changes; null takes a setting away."""

    model: str | None = None
    archived: bool | None = None


class SendToConversation(SendMessages):
    """Body of conversations.messages.create, which streams unless told otherwise."""

    streaming: bool = True
    agent_id: AgentInBody = None


class CompactConversation(Compact):
    """Body of conversations.messages.compact."""

    agent_id: AgentInBody = None


class RecompileConversation(Body):
    """Body of conversations.recompile."""

    agent_id: AgentInBody = None


def create_request(agent_id: str, body: CreateConversation) -> conversation_service_pb2.CreateConversationRequest:
    """Returns the request of CreateConversation, its id minted, so that it may be sent twice."""
    conversation = body.message()
    return conversation_service_pb2.CreateConversationRequest(
        conversation_id=to_public("conv", uuid7()),
        agent_id=agent_id,
        conversation=conversation,
        isolated_block_labels=conversation.isolated_block_labels,
    )


def update_request(
    conversation_id: str, body: UpdateConversation
) -> conversation_service_pb2.UpdateConversationRequest | None:
    """Returns the request of UpdateConversation; None when nothing changes."""
    archived = _archived_at(body)
    mask = FieldMask(paths=sorted((*body.mask(nulls=_CLEARED_BY_NULL).paths, *archived)))
    if not mask.paths:
        return None
    return conversation_service_pb2.UpdateConversationRequest(
        conversation_id=conversation_id, conversation=body.message(**archived), update_mask=mask
    )


def _archived_at(body: UpdateConversation) -> Json:
    if body.archived is None:
        return {}
    # Any time says that it is archived; the service has its own.
    return {"archived_at": timestamp(datetime.now(UTC)) if body.archived else None}
