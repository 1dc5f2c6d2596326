"""Parts of messages to protobuf and back."""

import pytest

from loci.agent.v1 import message_pb2
from services.agent.convert.parts import (
    content_from_proto,
    content_to_proto,
    decision_from_proto,
    decision_to_proto,
    return_from_proto,
    return_to_proto,
)
from services.agent.core.messages import Decision, Image, Return, Text
from services.common.errors import InvalidArgument
from services.common.grpc_limits import MAX_CONTENT_BYTES, MAX_MESSAGE_BYTES

PICTURE = Image("iVBORw==", media_type="image/png")


@pytest.mark.parametrize("part", [Text("hi"), Text(), PICTURE, Image(url="https://example.org/a.png")])
def test_texts_and_pictures_come_back(part: Text | Image) -> None:
    assert content_from_proto(content_to_proto(part)) == part


def test_returns_and_decisions_come_back() -> None:
    returned = Return("c", "look", "A cat.", True, ("out",), ("err",), (PICTURE,))
    assert return_from_proto(return_to_proto(returned, ()), [PICTURE]) == returned
    decision = Decision("c", True, "why", "00000000-0000-4000-8000-000000000001")
    assert decision_from_proto(decision_to_proto(decision)) == decision


@pytest.mark.parametrize("data", ["!", "AAA", "AA==AA==", "aGk-", "é"])
def test_a_picture_that_is_no_base64_is_refused(data: str) -> None:
    image = message_pb2.ImageContent(data_base64=data, media_type="image/png")
    with pytest.raises(InvalidArgument, match="is not base64") as caught:
        content_from_proto(message_pb2.ContentPart(image=image))
    assert caught.value.reason == "MESSAGE_INVALID"


def test_base64_is_stored_in_its_one_form() -> None:
    image = message_pb2.ImageContent(data_base64="AAF=", media_type="image/png")
    assert content_from_proto(message_pb2.ContentPart(image=image)) == Image("AAE=", media_type="image/png")


@pytest.mark.parametrize("size", [1, 1_000, MAX_CONTENT_BYTES])
def test_pictures_of_the_most_that_a_request_holds_fit_into_one_message(size: int) -> None:
    part = content_to_proto(Image("A" * (-(-size // 3) * 4), media_type="image/png"))
    beside = part.ByteSize() - len(part.image.data_base64)
    assert part.ByteSize() / (size + beside) * MAX_CONTENT_BYTES <= MAX_MESSAGE_BYTES
