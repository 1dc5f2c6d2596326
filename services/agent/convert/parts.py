"""Parts of messages <-> protobuf: of those that clients send and are shown, and of those that move in and out.

A picture by value is base64 here as in the log and on the wire; what comes in is checked, nothing is decoded.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from loci.agent.v1 import message_pb2
from services.agent.core.messages import Decision, Image, Part, Return, Text
from services.common.core.base64_text import canonical
from services.common.errors import InvalidArgument
from services.common.ids import from_public


def content_to_proto(part: Part) -> message_pb2.ContentPart:
    """Returns a text or a picture."""
    if isinstance(part, Image):
        return message_pb2.ContentPart(image=image_to_proto(part))
    return message_pb2.ContentPart(text=part.text if isinstance(part, Text) else "")


def content_from_proto(content: message_pb2.ContentPart) -> Text | Image | None:
    """Returns a text or a picture; None for neither. Raises InvalidArgument (MESSAGE_INVALID)."""
    match content.WhichOneof("part"):
        case "text":
            return Text(content.text)
        case "image":
            return image_from_proto(content.image)
        case None:
            return None


def image_to_proto(image: Image) -> message_pb2.ImageContent:
    """Returns a picture."""
    return message_pb2.ImageContent(**image_fields(image))


def image_fields(image: Image) -> dict[str, Any]:
    """Returns the fields of a picture, which ImageContent of agents and ImagePart of models have alike."""
    return {"url": image.url} if image.url else {"data_base64": image.data, "media_type": image.media_type}


def image_from_proto(image: message_pb2.ImageContent) -> Image:
    """Returns a picture. Raises InvalidArgument (MESSAGE_INVALID) where its data is not base64."""
    if image.WhichOneof("source") == "url":
        return Image(url=image.url)
    try:
        return Image(data=canonical(image.data_base64), media_type=image.media_type)
    except ValueError:
        raise InvalidArgument("the data of a picture is not base64", reason="MESSAGE_INVALID") from None


def return_to_proto(returned: Return, content: Iterable[Text | Image]) -> message_pb2.ToolReturn:
    """Returns what a tool returned; `content`: what stands in the member that can hold pictures."""
    return message_pb2.ToolReturn(
        tool_call_id=returned.call_id,
        status="error" if returned.is_error else "success",
        tool_return=returned.text,
        stdout=returned.stdout,
        stderr=returned.stderr,
        name=returned.name,
        content=map(content_to_proto, content),
        captures=returned.captures,
        by_client=returned.by_client,
    )


def return_from_proto(returned: message_pb2.ToolReturn, content: Sequence[Text | Image]) -> Return:
    """Returns what a tool returned; texts of its `content` come before the text beside it."""
    text = "\n".join(part.text for part in content if isinstance(part, Text))
    return Return(
        returned.tool_call_id,
        returned.name,
        text or returned.tool_return,
        returned.status == "error",
        tuple(returned.stdout),
        tuple(returned.stderr),
        tuple(part for part in content if isinstance(part, Image)),
        captures=returned.captures,
        by_client=returned.by_client,
    )


def decision_to_proto(part: Decision) -> message_pb2.Decision:
    """Returns an answer to a call that waited for approval."""
    return message_pb2.Decision(
        tool_call_id=part.call_id,
        approve=part.approve,
        reason=part.reason or None,
        request_id=f"message-{part.request_id}" if part.request_id else "",
    )


def decision_from_proto(decision: message_pb2.Decision) -> Decision:
    """Returns an answer to a call that waited for approval. Raises InvalidArgument (INVALID_ID)."""
    request_id = str(from_public("message", decision.request_id)) if decision.request_id else ""
    return Decision(decision.tool_call_id, decision.approve, decision.reason, request_id)
