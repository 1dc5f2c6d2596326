"""The content of messages: text and pictures."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from gateway.errors.invalid import InvalidRequest
from gateway.rest.body import Body
from loci.agent.v1 import message_pb2

MAX_IMAGE_BYTES = 20 * 1024 * 1024


class TextPart(Body):
    """Text in a message."""

    type: Literal["text"] = "text"
    text: str


class ImageSource(Body):
    """Where a picture is: an https address, or base64 with its media type."""

    type: Literal["url", "base64", "letta"] = "base64"
    url: str | None = None
    data: str | None = None
    media_type: str | None = None


class ImagePart(Body):
    """A picture in a message."""

    type: Literal["image"]
    source: ImageSource


class OtherPart(Body):
    """Parts of agents' messages, which clients do not send."""

    type: Literal[
        "tool_call",
        "tool_return",
        "reasoning",
        "redacted_reasoning",
        "omitted_reasoning",
        "summarized_reasoning",
    ]


def _kind(value: Any) -> str:
    kind = value.get("type", "text") if isinstance(value, dict) else getattr(value, "type", "text")
    return str(kind) if kind in {"text", "image"} else "other"


Part = TextPart | ImagePart | OtherPart
ContentPart = Annotated[
    Annotated[TextPart, Tag("text")] | Annotated[ImagePart, Tag("image")] | Annotated[OtherPart, Tag("other")],
    Discriminator(_kind),
]
Content = str | list[ContentPart]


def parts(content: str | Sequence[Part]) -> list[message_pb2.ContentPart]:
    """`content` part by part. Raises InvalidRequest."""
    if isinstance(content, str):
        return [message_pb2.ContentPart(text=content)]
    return [_part(part) for part in content]


def _part(part: Part) -> message_pb2.ContentPart:
    match part:
        case TextPart():
            return message_pb2.ContentPart(text=part.text)
        case ImagePart():
            return message_pb2.ContentPart(image=_image(part.source))
        case OtherPart():
            raise InvalidRequest(f"a client's message cannot have a part of type {part.type}", "body", "messages")


def _image(source: ImageSource) -> message_pb2.ImageContent:
    if source.type == "url" and source.url:
        if not source.url.startswith("https://"):
            raise InvalidRequest("the address of an image must begin with https://", "body", "messages")
        return message_pb2.ImageContent(url=source.url)
    if source.type != "base64" or not source.data or not source.media_type:
        raise InvalidRequest(
            "an image needs a source of type url with `url`, or of type base64 with `data` and `media_type`",
            "body",
            "messages",
        )
    try:
        data = base64.b64decode(source.data, validate=True)
    except binascii.Error:
        raise InvalidRequest("the `data` of an image is not base64", "body", "messages") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise InvalidRequest("an image is larger than 20 MiB", "body", "messages")
    return message_pb2.ImageContent(data=data, media_type=source.media_type)
