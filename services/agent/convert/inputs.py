"""The messages that clients send <- protobuf, as they will be stored."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from loci.agent.v1 import message_pb2
from services.agent.convert.parts import content_from_proto, decision_from_proto, return_from_proto
from services.agent.core.messages import Image, Message, Part, Role, Text, storable_part
from services.common.core.storable import storable
from services.common.errors import InvalidArgument
from services.common.ids import uuid7

LONGEST_TEXT = 4_000_000
# Messages of one request.
MOST_MESSAGES = 100
_ROLES: Mapping[int, Role] = {
    message_pb2.MESSAGE_ROLE_SYSTEM: "system",
    message_pb2.MESSAGE_ROLE_ASSISTANT: "assistant",
}


def messages_from_proto(sent: Sequence[message_pb2.InputMessage], run_id: UUID, now: datetime) -> tuple[Message, ...]:
    """Returns what a client sends, as it will be stored.

    Raises InvalidArgument (MESSAGES_EMPTY, MESSAGE_INVALID, INVALID_ID).
    """
    if not sent:
        raise InvalidArgument("messages must hold at least one message", reason="MESSAGES_EMPTY")
    if len(sent) > MOST_MESSAGES:
        sentence = f"messages has {len(sent)} messages; at most {MOST_MESSAGES} can be sent at once"
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    if any(message.answers for message in sent[1:]):
        raise InvalidArgument("answers must come first in messages, in one message", reason="MESSAGE_INVALID")
    said = [(number, message) for number, message in enumerate(sent) if not _says_nothing(message)]
    # A chat client has an instruction or a greeting first, filled in or not.
    return tuple(_input(message, number, run_id, now) for number, message in said or enumerate(sent))


def _says_nothing(sent: message_pb2.InputMessage) -> bool:
    """Returns whether it is an instruction or a word of the assistant without a word in it."""
    is_text = all(part.WhichOneof("part") != "image" and not part.text for part in sent.content)
    return _role(sent) in ("system", "assistant") and is_text


def _input(sent: message_pb2.InputMessage, number: int, run_id: UUID, now: datetime) -> Message:
    parts: tuple[Part, ...] = _answers(sent, number) if sent.answers else _parts(sent.content, number)
    if not parts:
        raise InvalidArgument(f"messages[{number}] has no content", reason="MESSAGES_EMPTY")
    role = _role(sent)
    if role == "assistant" and any(isinstance(part, Image) for part in parts):
        raise InvalidArgument(f"messages[{number}] has a picture in role assistant", reason="MESSAGE_INVALID")
    return Message(
        id=uuid7(),
        role=role,
        parts=parts,
        created_at=now,
        run_id=run_id,
        name=_optional(sent, "name"),
        otid=_optional(sent, "otid"),
        sender_id=_optional(sent, "sender_id"),
    )


def _role(sent: message_pb2.InputMessage) -> Role:
    return "approval" if sent.answers else _ROLES.get(sent.role, "user")


def _parts(content: Iterable[message_pb2.ContentPart], number: int) -> tuple[Text | Image, ...]:
    return tuple(part for each in content if (part := _part(each, number)) is not None)


def _answers(sent: message_pb2.InputMessage, number: int) -> tuple[Part, ...]:
    if sent.content:
        raise InvalidArgument(f"messages[{number}] has both content and answers", reason="MESSAGE_INVALID")
    return tuple(storable_part(_answer(answer, number)) for answer in sent.answers)


def _answer(answer: message_pb2.Answer, number: int) -> Part:
    match answer.WhichOneof("answer"):
        case "decision":
            return decision_from_proto(answer.decision)
        case "tool_return":
            return return_from_proto(answer.tool_return, _parts(answer.tool_return.content, number))
        case _:
            raise InvalidArgument(f"messages[{number}] has an answer that says nothing", reason="MESSAGE_INVALID")


def _optional(sent: message_pb2.InputMessage, name: Literal["name", "otid", "sender_id"]) -> str | None:
    text: str = getattr(sent, name)
    return storable(text) if sent.HasField(name) else None


def _part(content: message_pb2.ContentPart, number: int) -> Text | Image | None:
    part = content_from_proto(content)
    if part is None:
        return None
    part = storable_part(part)
    if isinstance(part, Image):
        return part
    if len(part.text) > LONGEST_TEXT:
        sentence = f"messages[{number}] has {len(part.text)} characters; at most {LONGEST_TEXT} can be sent"
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    return part if part.text else None
