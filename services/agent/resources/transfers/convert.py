"""Imports and exports <-> protobuf."""

from collections.abc import Iterator
from typing import Any, assert_never, cast
from uuid import UUID

from loci.agent.v1 import message_pb2
from loci.agent.v1 import transfer_service_pb2 as wire
from services.agent.convert.fields import json_object, optional_text
from services.agent.convert.parts import (
    content_from_proto,
    decision_from_proto,
    decision_to_proto,
    image_from_proto,
    image_to_proto,
    return_from_proto,
    return_to_proto,
)
from services.agent.core.messages import (
    Call,
    Decision,
    Gate,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Role,
    Text,
    storable_part,
)
from services.agent.resources.agents.convert import setting_values
from services.agent.resources.agents.model.checks import invalid as agent_invalid
from services.agent.resources.transfers.model import (
    MOST_MEMBERS,
    MOST_MESSAGES,
    ImportedAgent,
    ImportedConversation,
    ImportedGroup,
    ImportedMessages,
    ImportPart,
    invalid,
    manager_of,
    words,
)
from services.common.core.storable import storable
from services.common.errors import InvalidArgument
from services.common.ids import from_public, ids_in, to_public
from services.common.timestamps import moment_in, timestamp

_ROLE = "MESSAGE_ROLE_"
# Texts of one frame of a stream, in bytes; a message that is longer travels alone.
_FRAME_BYTES, _FRAME_MESSAGES = 4 * 1024 * 1024, 100


def import_part(request: wire.ImportAgentsRequest) -> ImportPart:
    """Returns a part of an import. Raises Refused, InvalidArgument."""
    match request.WhichOneof("part"):
        case "agent":
            return _agent(request.agent)
        case "conversation":
            return _conversation(request.conversation)
        case "messages":
            return _messages(request.messages)
        case "group":
            return _group(request.group)
        case _:
            raise invalid("a part of an import says nothing")


def stored_to_proto(message: Message, *, in_context: bool) -> wire.StoredMessage:
    """Returns a message as an import takes it."""
    return wire.StoredMessage(
        id=to_public("message", message.id),
        role=message_pb2.MessageRole.Value(f"{_ROLE}{message.role.upper()}"),
        parts=map(_part_to_proto, message.parts),
        created_at=timestamp(message.created_at),
        name=message.name,
        otid=message.otid,
        sender_id=message.sender_id,
        in_context=in_context,
    )


class Frames:
    """Messages of a stream, put together as far as a frame goes."""

    def __init__(self) -> None:
        self._messages: list[wire.StoredMessage] = []
        self._bytes = 0

    def add(self, message: wire.StoredMessage) -> Iterator[wire.StreamStoredMessagesResponse]:
        """Yields the frame before, when this one does not fit into it."""
        size = message.ByteSize()
        if self._messages and (self._bytes + size > _FRAME_BYTES or len(self._messages) == _FRAME_MESSAGES):
            yield from self.rest()
        self._messages.append(message)
        self._bytes += size

    def rest(self) -> Iterator[wire.StreamStoredMessagesResponse]:
        """Returns the last frame, if anything is left."""
        if self._messages:
            yield wire.StreamStoredMessagesResponse(messages=self._messages)
        self._messages, self._bytes = [], 0


# Agents, conversations, groups -------------------------------------------------------------------------------------


def _agent(sent: wire.ImportedAgent) -> ImportedAgent:
    return ImportedAgent(
        id=from_public("agent", sent.agent_id),
        settings=setting_values(sent.agent),
        block_ids=ids_in("block", sent.block_ids),
        folder_ids=ids_in("source", sent.folder_ids),
        archive_ids=ids_in("archive", sent.archive_ids),
        identity_ids=ids_in("identity", sent.agent.identity_ids),
        secrets=dict(sent.agent.secrets),
        include_base_tools=sent.include_base_tools,
        prompt=storable(sent.prompt),
        created_at=moment_in(sent, "created_at", _invalid_time),
    )


def _conversation(sent: wire.ImportedConversation) -> ImportedConversation:
    settings: dict[str, Any] = {"summary": optional_text(sent, "summary"), "model": optional_text(sent, "model")}
    if sent.model_settings_json:
        settings["model_settings"] = json_object("model_settings", sent.model_settings_json, agent_invalid)
    return ImportedConversation(
        id=from_public("conv", sent.conversation_id),
        agent_id=from_public("agent", sent.agent_id),
        settings=settings,
        isolated_block_ids=ids_in("block", sent.isolated_block_ids),
        prompt=storable(sent.prompt),
        created_at=moment_in(sent, "created_at", _invalid_time),
    )


def _group(sent: wire.ImportedGroup) -> ImportedGroup:
    if not 0 < len(sent.agent_ids) <= MOST_MEMBERS:
        raise invalid(f"a group has 1 to {MOST_MEMBERS} agents, not {len(sent.agent_ids)}")
    manager_type, manager_agent_id, settings = manager_of(sent.manager_config_json)
    return ImportedGroup(
        id=from_public("group", sent.group_id),
        description=words(sent.description),
        agent_ids=ids_in("agent", sent.agent_ids),
        manager_type=manager_type,
        manager_agent_id=None if manager_agent_id is None else from_public("agent", manager_agent_id),
        manager_settings=settings,
        shared_block_ids=ids_in("block", sent.shared_block_ids),
        template_id=words(sent.template_id) or None,
        base_template_id=words(sent.base_template_id) or None,
        deployment_id=words(sent.deployment_id) or None,
    )


def _invalid_time(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{name} {problem}", reason="IMPORT_INVALID")


# Messages ----------------------------------------------------------------------------------------------------------


def _messages(sent: wire.ImportedMessages) -> ImportedMessages:
    if len(sent.messages) > MOST_MESSAGES:
        raise invalid(f"a frame has {len(sent.messages)} messages; at most {MOST_MESSAGES} are taken at once")
    named = sent.conversation_id
    prefix = "agent" if named.startswith("agent-") else "conv"
    messages = [(_message(message), message.in_context) for message in sent.messages]
    return ImportedMessages(from_public(prefix, named), messages)


def _message(sent: wire.StoredMessage) -> Message:
    message_id = from_public("message", sent.id)
    role = message_pb2.MessageRole.DESCRIPTOR.values_by_number.get(sent.role)
    if role is None or not sent.role:
        raise _wrong(sent, "has no role")
    created_at = moment_in(sent, "created_at", _invalid_time)
    if created_at is None:
        raise _wrong(sent, "has no time")
    if not sent.parts:
        raise _wrong(sent, "has no parts")
    return Message(
        id=message_id,
        role=cast(Role, role.name.removeprefix(_ROLE).lower()),
        parts=tuple(storable_part(_part(part, message_id, place, sent)) for place, part in enumerate(sent.parts)),
        created_at=created_at,
        name=storable(sent.name) if sent.HasField("name") else None,
        otid=storable(sent.otid) if sent.HasField("otid") else None,
        sender_id=storable(sent.sender_id) if sent.HasField("sender_id") else None,
    )


def _part(part: wire.StoredPart, message_id: UUID, place: int, sent: wire.StoredMessage) -> Part:
    match part.WhichOneof("part"):
        case "text":
            return Text(part.text.text, part.text.signature)
        case "image":
            return image_from_proto(part.image)
        case "reasoning":
            return Reasoning(part.reasoning.text, part.reasoning.signature, part.reasoning.prompted)
        case "redacted_reasoning":
            return RedactedReasoning(part.redacted_reasoning)
        case "call":
            if part.call.gate not in ("", "approval", "client"):
                raise _wrong(sent, "has a call whose gate is neither 'approval' nor 'client'")
            # As the tool runner knows it, should it run yet.
            key = f"import-{message_id}-{place}"
            return Call(key, part.call.id, part.call.name, part.call.arguments, cast(Gate, part.call.gate))
        case "tool_return":
            content = [each for piece in part.tool_return.content if (each := content_from_proto(piece)) is not None]
            return return_from_proto(part.tool_return, content)
        case "decision":
            if sent.role != message_pb2.MESSAGE_ROLE_APPROVAL:
                raise _wrong(sent, "has a decision and is not of the role approval")
            return decision_from_proto(part.decision)
        case _:
            raise _wrong(sent, "has a part that says nothing")


def _part_to_proto(part: Part) -> wire.StoredPart:
    match part:
        case Text():
            return wire.StoredPart(text=wire.StoredText(text=part.text, signature=part.signature))
        case Image():
            return wire.StoredPart(image=image_to_proto(part))
        case Reasoning():
            thought = wire.StoredReasoning(text=part.text, signature=part.signature, prompted=part.prompted)
            return wire.StoredPart(reasoning=thought)
        case RedactedReasoning():
            return wire.StoredPart(redacted_reasoning=part.data)
        case Call():
            call = wire.StoredCall(id=part.id, name=part.name, arguments=part.arguments, gate=part.gate)
            return wire.StoredPart(call=call)
        case Return():
            return wire.StoredPart(tool_return=return_to_proto(part, part.images))
        case Decision():
            return wire.StoredPart(decision=decision_to_proto(part))
    assert_never(part)


def _wrong(sent: wire.StoredMessage, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{sent.id[:60]} {problem}", reason="MESSAGE_INVALID", metadata={"entity": sent.id[:60]})
