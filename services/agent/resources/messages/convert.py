"""Changes of stored messages, and messages that were said elsewhere <- protobuf."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from loci.agent.v1 import message_pb2, message_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.agent.convert.first_messages import first_messages
from services.agent.convert.inputs import messages_from_proto
from services.agent.core.messages import Message, Part
from services.agent.core.page_tokens import MessagePage
from services.agent.resources.messages.model import Kind
from services.common.errors import InvalidArgument
from services.common.ids import uuid7
from services.common.page_requests import page_by_id

_PER_PAGE = 100
# The low bits of an id: the piece of a message, and above it the message of a request.
_PIECE_BITS = 7
_OF_REQUEST = 0x7F << _PIECE_BITS


def message_page(request: PageRequest, *, ascending: bool = False) -> MessagePage:
    """Returns the page of a list of messages; `ascending`: its default order. Raises Refused, InvalidArgument."""
    page = page_by_id(request, "message", _PER_PAGE, ascending=ascending)
    return MessagePage(page.size, page.token, page.after, page.before, page.ascending)


def new_text(request: message_service_pb2.UpdateMessageRequest) -> tuple[Kind, Sequence[Part]]:
    """Returns the kind and the new content of a message. Raises InvalidArgument (MESSAGE_INVALID, MESSAGES_EMPTY)."""
    match request.WhichOneof("text"):
        case "system_message":
            return "system", _parts(request.system_message.content)
        case "user_message":
            return "user", _said(request.user_message.content)
        case "assistant_message":
            return "assistant", _parts(request.assistant_message.content)
        case "reasoning_message":
            return "reasoning", _parts(request.reasoning_message.reasoning)
        case _:
            raise InvalidArgument("the new text is missing", reason="MESSAGE_INVALID")


def captured_messages(request: message_service_pb2.CaptureMessagesRequest) -> tuple[Message, ...]:
    """Returns the messages as they will be stored, with ids that follow from the request's, in order.

    Raises InvalidArgument (MESSAGES_EMPTY, MESSAGE_INVALID, INVALID_ID).
    """
    messages = first_messages(request.messages, field="messages")
    if not messages:
        raise InvalidArgument("messages must hold at least one message", reason="MESSAGES_EMPTY")
    base = _request_id(request.request_id).int & ~_OF_REQUEST
    return tuple(replace(message, id=UUID(int=base | number << _PIECE_BITS)) for number, message in enumerate(messages))


def _request_id(text: str) -> UUID:
    if not text:
        return uuid7()
    try:
        return UUID(text)
    except ValueError:
        raise InvalidArgument("request_id is not a UUID", reason="INVALID_ID") from None


def _parts(text: str) -> Sequence[Part]:
    return _said([message_pb2.ContentPart(text=text)])


def _said(content: Sequence[message_pb2.ContentPart]) -> Sequence[Part]:
    sent = message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_USER, content=content)
    return messages_from_proto([sent], uuid7(), datetime.now(UTC))[0].parts
