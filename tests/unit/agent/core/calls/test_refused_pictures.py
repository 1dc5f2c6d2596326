"""Pictures that a provider refused once."""

from uuid import uuid4

from services.agent.core.calls.failures import refuses_pictures
from services.agent.core.calls.refused_pictures import RefusedPictures
from services.agent.core.messages import Image, Message, Text
from services.common.errors import InvalidArgument
from tests.unit.agent.core.calls.test_pictures import PNG
from tests.unit.agent.histories import message

RUN = uuid4()


def shown(number: int, *parts: Text | Image) -> Message:
    return message(number, "user", *parts)


def pictures_in(history: list[Message]) -> list[int]:
    return [sum(isinstance(part, Image) for part in each.parts) for each in history]


def test_what_was_refused_is_not_sent_again_and_what_was_taken_is() -> None:
    known, good, bad = RefusedPictures(), shown(1, Image(data=PNG)), shown(2, Text("?"), Image(data="AAAA"))
    known.note_answer([good], "m", set())
    suspects = known.suspects([good, bad], "m")
    assert suspects == {bad.id}
    known.note_answer([good], "m", suspects)
    assert pictures_in(known.without([good, bad], "m", keep_run=RUN)) == [1, 0]
    # Another model may take it, and the run that brought it asks about it.
    assert pictures_in(known.without([good, bad], "n", keep_run=RUN)) == [1, 1]
    assert pictures_in(known.without([bad], "m", keep_run=bad.run_id or RUN)) == [1]


def test_refusals_that_speak_of_pictures() -> None:
    def said(text: str, reason: str = "LLM_BAD_REQUEST") -> bool:
        return refuses_pictures(InvalidArgument(text, reason=reason))

    assert said("openai (400) refuses the request: You uploaded an unsupported image.")
    assert said("anthropic (400): messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'")
    assert not said("openai (400) refuses the request: Invalid 'temperature'.")
    assert not said("This speaks of an image", "LLM_RATE_LIMIT")
    assert said("No eyes", "LLM_IMAGES_UNSUPPORTED")
