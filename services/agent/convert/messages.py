"""Messages <-> protobuf: stored messages as clients see them, and what clients send."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, assert_never
from uuid import UUID

from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import message_pb2
from services.agent.events import Delta, Shown
from services.agent.messages import (
    Call,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    pieces,
    system_message_id,
    without_nul,
)
from services.common.errors import InvalidArgument
from services.common.ids import to_public, uuid7

LONGEST_TEXT = 4_000_000
# Messages of one request.
MOST_MESSAGES = 100


def messages_to_proto(message: Message) -> list[message_pb2.Message]:
    """A stored message as clients see it: one for each of its pieces."""
    return [_piece(message, otid, parts) for otid, parts in pieces(message)]


def system_message_to_proto(conversation_id: UUID, prompt: str, created_at: datetime) -> message_pb2.Message:
    """The compiled prompt, shown as the first message of its conversation."""
    return message_pb2.Message(
        id=to_public("message", system_message_id(conversation_id)),
        date=timestamp(created_at),
        system_message=message_pb2.SystemMessage(content=prompt),
    )


def shown_to_proto(event: Shown) -> message_pb2.Message:
    """A durable piece in a stream."""
    shown = _piece(event.message, event.otid, event.parts)
    shown.seq_id = event.sequence
    return shown


def delta_to_proto(event: Delta, run_id: UUID) -> message_pb2.Message:
    """A delta in a stream."""
    shown = message_pb2.Message(
        id=to_public("message", event.message_id),
        date=timestamp(datetime.now(UTC)),
        otid=event.otid,
        step_id=to_public("step", event.step_id),
        run_id=to_public("run", run_id),
        seq_id=event.sequence,
    )
    _put(shown, "assistant", (event.part,))
    return shown


def messages_from_proto(sent: Sequence[message_pb2.InputMessage], run_id: UUID, now: datetime) -> tuple[Message, ...]:
    """What a client sends, as it will be stored. Raises InvalidArgument (MESSAGES_EMPTY, MESSAGE_INVALID)."""
    if not sent:
        raise InvalidArgument("messages must hold at least one message", reason="MESSAGES_EMPTY")
    if len(sent) > MOST_MESSAGES:
        sentence = f"messages has {len(sent)} messages; at most {MOST_MESSAGES} can be sent at once"
        raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
    return tuple(_input(message, number, run_id, now) for number, message in enumerate(sent))


def timestamp(time: datetime) -> Timestamp:
    """A time on the wire."""
    wire = Timestamp()
    wire.FromDatetime(time)
    return wire


def _piece(message: Message, otid: str, parts: Sequence[Part]) -> message_pb2.Message:
    shown = message_pb2.Message(
        id=to_public("message", message.id),
        date=timestamp(message.created_at),
        name=message.name,
        otid=otid,
        sender_id=message.sender_id,
        step_id=None if message.step_id is None else to_public("step", message.step_id),
        run_id=None if message.run_id is None else to_public("run", message.run_id),
    )
    _put(shown, message.role, parts)
    return shown


def _put(shown: message_pb2.Message, role: str, parts: Sequence[Part]) -> None:
    first = parts[0]
    match first:
        case Text() | Image() if role == "user":
            shown.user_message.content.extend(map(_content, parts))
        case Text() | Image() if role == "system":
            shown.system_message.content = _joined(parts)
        case Text() | Image():
            shown.assistant_message.content = _joined(parts)
        case Reasoning():
            shown.reasoning_message.source = "reasoner_model"
            shown.reasoning_message.reasoning = _joined(parts)
            if first.signature:
                shown.reasoning_message.signature = first.signature
        case RedactedReasoning():
            shown.hidden_reasoning_message.state = "redacted"
            shown.hidden_reasoning_message.hidden_reasoning = first.data
        case Call():
            calls = (part for part in parts if isinstance(part, Call))
            shown.tool_call_message.tool_calls.extend(map(_call, calls))
        case Return():
            returns = [part for part in parts if isinstance(part, Return)]
            shown.name = returns[0].name
            shown.is_err = any(part.is_error for part in returns)
            shown.tool_return_message.tool_returns.extend(map(_return, returns))
        case _:
            assert_never(first)


def _joined(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text | Reasoning))


def _content(part: Part) -> message_pb2.ContentPart:
    if not isinstance(part, Image):
        return message_pb2.ContentPart(text=_joined((part,)))
    if part.url:
        return message_pb2.ContentPart(image=message_pb2.ImageContent(url=part.url))
    image = message_pb2.ImageContent(data=b64decode(part.data), media_type=part.media_type)
    return message_pb2.ContentPart(image=image)


def _call(call: Call) -> message_pb2.ToolCall:
    return message_pb2.ToolCall(name=call.name, arguments=call.arguments, tool_call_id=call.id)


def _return(returned: Return) -> message_pb2.ToolReturn:
    return message_pb2.ToolReturn(
        tool_call_id=returned.call_id,
        status="error" if returned.is_error else "success",
        tool_return=returned.text,
        stdout=returned.stdout,
        stderr=returned.stderr,
        name=returned.name,
    )


def _input(sent: message_pb2.InputMessage, number: int, run_id: UUID, now: datetime) -> Message:
    parts = tuple(part for content in sent.content if (part := _part(content, number)) is not None)
    if not parts:
        raise InvalidArgument(f"messages[{number}] has no content", reason="MESSAGES_EMPTY")
    return Message(
        id=uuid7(),
        role="system" if sent.role == message_pb2.MESSAGE_ROLE_SYSTEM else "user",
        parts=parts,
        created_at=now,
        run_id=run_id,
        name=_optional(sent, "name"),
        otid=_optional(sent, "otid"),
        sender_id=_optional(sent, "sender_id"),
    )


def _optional(sent: message_pb2.InputMessage, name: Literal["name", "otid", "sender_id"]) -> str | None:
    text: str = getattr(sent, name)
    return text.replace("\0", "") if sent.HasField(name) else None


def _part(content: message_pb2.ContentPart, number: int) -> Part | None:
    match content.WhichOneof("part"):
        case "text":
            text = content.text.replace("\0", "")
            if len(text) > LONGEST_TEXT:
                sentence = f"messages[{number}] has {len(text)} characters; at most {LONGEST_TEXT} can be sent"
                raise InvalidArgument(sentence, reason="MESSAGE_INVALID")
            return Text(text) if text else None
        case "image" if content.image.WhichOneof("source") == "url":
            return without_nul(Image(url=content.image.url))
        case "image":
            data = b64encode(content.image.data).decode()
            return without_nul(Image(data=data, media_type=content.image.media_type))
        case _:
            return None
