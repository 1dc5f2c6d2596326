"""Conversations: what clients set on them, and what they say in them."""

from datetime import UTC, datetime

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.resources.agents.requests import Handle
from gateway.resources.messages.requests import Compact, SendMessages
from gateway.rest.body import Body, Json, Positive, dump, given
from gateway.rest.params import AgentInBody, Moment
from loci.agent.v1 import conversation_pb2, conversation_service_pb2
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp

_PATHS = {"archived": "archived_at"}
# What a null means something for: what was set is set no more.
_CLEARED_BY_NULL = frozenset({"summary", "description", "model", "model_settings", "context_window_limit"})


class ConversationSettings(Body):
    """The fields that creation and change share."""

    summary: str | None = None
    description: str | None = None
    model: Handle | None = None
    model_settings: Json | None = None
    context_window_limit: Positive | None = None


class CreateConversation(ConversationSettings):
    """Body of conversations.create."""

    hidden: bool | None = None
    # Of the blocks of which it gets copies of its own.
    isolated_block_labels: list[str] | None = None


class UpdateConversation(ConversationSettings):
    """Body of conversations.update: only what is sent changes; null takes a setting away."""

    archived: bool | None = None
    last_message_at: Moment | None = None


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
    return conversation_service_pb2.CreateConversationRequest(
        conversation_id=to_public("conv", uuid7()),
        agent_id=agent_id,
        conversation=_draft(given(body)),
        isolated_block_labels=body.isolated_block_labels,
    )


def update_request(
    conversation_id: str, body: UpdateConversation
) -> conversation_service_pb2.UpdateConversationRequest | None:
    """Returns the request of UpdateConversation; None when nothing changes."""
    sent = given(body)
    cleared = body.model_fields_set.difference(sent) & _CLEARED_BY_NULL
    if not sent and not cleared:
        return None
    return conversation_service_pb2.UpdateConversationRequest(
        conversation_id=conversation_id,
        conversation=_draft(sent),
        update_mask=FieldMask(paths=sorted(_PATHS.get(name, name) for name in cleared.union(sent))),
    )


def _draft(sent: Json) -> conversation_pb2.Conversation:
    fields = {name: value for name, value in sent.items() if name != "isolated_block_labels"}
    if "model_settings" in fields:
        fields["model_settings_json"] = dump(fields.pop("model_settings"))
    if "archived" in fields:
        # Any time says that it is archived; the service has its own.
        fields["archived_at"] = timestamp(datetime.now(UTC)) if fields.pop("archived") else None
    if "last_message_at" in fields:
        fields["last_message_at"] = timestamp(fields["last_message_at"])
    return conversation_pb2.Conversation(**fields)
