"""The first messages of a new agent's conversation <- protobuf."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from loci.agent.v1 import message_pb2
from services.agent.convert.inputs import messages_from_proto
from services.agent.core.messages import Message, Text
from services.common.errors import InvalidArgument
from services.common.ids import uuid7

_ASSISTANT = message_pb2.MESSAGE_ROLE_ASSISTANT
_ROLES = (
    message_pb2.MESSAGE_ROLE_UNSPECIFIED,
    message_pb2.MESSAGE_ROLE_USER,
    message_pb2.MESSAGE_ROLE_SYSTEM,
    _ASSISTANT,
)


def first_messages(sent: Sequence[message_pb2.InputMessage], *, field: str = "initial_messages") -> tuple[Message, ...]:
    """Returns the messages as they will be stored; none are as good as any. `field`: what errors call them.

    Raises InvalidArgument (MESSAGES_EMPTY, MESSAGE_INVALID).
    """
    if not sent:
        return ()
    for number, message in enumerate(sent):
        if message.role not in _ROLES or message.answers:
            sentence = f"{field}[{number}] must be of the role user, system or assistant, without answers"
            raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    stored = messages_from_proto(sent, uuid7(), datetime.now(UTC))
    return tuple(_first(message, f"{field}[{number}]", sent[number].role) for number, message in enumerate(stored))


def _first(message: Message, name: str, role: message_pb2.MessageRole.ValueType) -> Message:
    """Returns the message without a run: no request brought it."""
    if role != _ASSISTANT:
        return replace(message, run_id=None)
    if not all(isinstance(part, Text) for part in message.parts):
        sentence = f"{name} is of the role assistant and must be text"
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    return replace(message, run_id=None, role="assistant")
