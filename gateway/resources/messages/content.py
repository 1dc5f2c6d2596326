"""The content of messages, text and pictures: as clients write it <-> protobuf.

A picture by value is base64 everywhere; here it is checked and measured, and not decoded.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from gateway.errors.invalid import InvalidRequest
from gateway.rest.body import Body
from gateway.rest.convert import Rest
from loci.agent.v1 import message_pb2
from services.common.core.base64_text import canonical, decoded_size

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
            return _image(part.source)
        case OtherPart():
            raise InvalidRequest(f"a client's message cannot have a part of type {part.type}", "body", "messages")


def _image(source: ImageSource) -> message_pb2.ContentPart:
    if source.type == "url" and source.url:
        if not source.url.startswith("https://"):
            raise InvalidRequest("the address of an image must begin with https://", "body", "messages")
        return message_pb2.ContentPart(image=message_pb2.ImageContent(url=source.url))
    if source.type != "base64" or not source.data or not source.media_type:
        raise InvalidRequest(
            "an image needs a source of type url with `url`, or of type base64 with `data` and `media_type`",
            "body",
            "messages",
        )
    try:
        data = canonical(source.data)
    except ValueError:
        raise InvalidRequest("the `data` of an image is not base64", "body", "messages") from None
    if decoded_size(data) > MAX_IMAGE_BYTES:
        raise InvalidRequest("an image is larger than 20 MiB", "body", "messages")
    part = message_pb2.ContentPart()
    # In its place: a part that is made of a message holds a copy of it.
    part.image.data_base64, part.image.media_type = data, source.media_type
    return part


def content_to_rest(content: Iterable[message_pb2.ContentPart]) -> Any:
    """Returns the content of a message: a text where that is all, else parts."""
    parts = [part_to_rest(part) for part in content]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def part_to_rest(part: message_pb2.ContentPart) -> Rest:
    """Returns a text or a picture."""
    if part.HasField("image"):
        return image_to_rest(part.image)
    return {"type": "text", "text": part.text, "signature": None}


def image_to_rest(image: message_pb2.ImageContent) -> Rest:
    """Returns a picture."""
    if image.WhichOneof("source") == "url":
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data_base64, "detail": None}
    return {"type": "image", "source": source}
