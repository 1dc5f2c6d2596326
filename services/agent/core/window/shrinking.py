"""Messages made smaller for a window that they do not fit into, each still of a form that providers take. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from services.agent.core.messages import (
    Call,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    has_part,
    text_of,
)
from services.agent.core.window.sizes import (
    BYTES_PER_TOKEN,
    bytes_for,
    bytes_of,
    clamp_return,
    clip,
    clip_arguments,
    estimate,
    level,
    weight,
)

A_PICTURE = Text("[a picture was here]")
# The newest messages with returns keep them as they are; of each older return so many bytes stay.
FRESH = 4
OLD_RETURN_BYTES = 1_000
# A text that would keep less says nothing any more.
_LEAST_BYTES = 24
_RETURN_HINT = "call the tool again if you need them"
_TOO_LARGE = "[This is too large for the window; what follows is as much of it as fits.]\n"


def in_words(message: Message) -> Message:
    """Returns the message with a few words instead of each picture."""
    if not any(isinstance(part, Image) or (isinstance(part, Return) and part.images) for part in message.parts):
        return message
    return replace(message, parts=tuple(map(_part_in_words, message.parts)))


def with_clamped_returns(history: Sequence[Message], window: int) -> tuple[Message, ...]:
    """Returns the stored history with what may be shown of each tool return in a window of so many tokens."""
    return tuple([_with_clamped_returns(each, window) if has_part(each, Return) else each for each in history])


def with_short_returns(history: Sequence[Message]) -> list[Message]:
    """Returns the history with only the beginning and the end of each old tool return, and without its pictures."""
    places = [place for place, message in enumerate(history) if message.role == "tool"]
    old = set(places[:-FRESH])
    return [_with_short_return(message) if place in old else message for place, message in enumerate(history)]


def shrink(unit: Sequence[Message], room: int, load: int) -> list[Message]:
    """Returns messages that belong together, in at most `room` tokens (16 at least) and `load` bytes.

    The longest texts are cut in their middle. When that is not enough the pictures become words, then thoughts are
    left out, and in the end all is one message with the texts as far as they fit.
    """
    plain = [in_words(message) for message in unit]
    for tried in (unit, plain, [_without_thoughts(message) for message in plain]):
        cut = _with_short_texts(tried, room, load)
        if _fits(cut, room, load) and all(message.parts for message in cut):
            return cut
    text = _TOO_LARGE + "\n".join(map(text_of, unit))
    empty = replace(unit[-1], role="user", parts=(Text(),))
    return [replace(empty, parts=(Text(clip(text, min(bytes_for(room - estimate(empty)), load))),))]


def _fits(unit: Sequence[Message], room: int, load: int) -> bool:
    return sum(map(estimate, unit)) <= room and sum(map(weight, unit)) <= load


def _with_short_texts(unit: Sequence[Message], room: int, load: int) -> list[Message]:
    if _fits(unit, room, load):
        return list(unit)
    parts = [part for message in unit for part in message.parts]
    bare = [replace(message, parts=tuple(_with_text(part, "") for part in message.parts)) for message in unit]
    # One token per part for what rounding hides.
    tokens = room - sum(map(estimate, bare)) - len(parts)
    most = level(
        [bytes_of(_text(part)) for part in parts], min(tokens * BYTES_PER_TOKEN, load - sum(map(weight, bare)))
    )
    if most < _LEAST_BYTES:
        return list(unit)
    return [replace(message, parts=tuple(_cut(part, most) for part in message.parts)) for message in unit]


def _text(part: Part) -> str:
    """Returns the text of a part that may be cut; thoughts are signed and go whole or not at all."""
    match part:
        case Text(text=text) | Return(text=text) | Call(arguments=text):
            return text
        case _:
            return ""


def _with_text(part: Part, text: str) -> Part:
    match part:
        case Text() | Return():
            return replace(part, text=text)
        case Call():
            return replace(part, arguments=text)
        case _:
            return part


def _cut(part: Part, most: int) -> Part:
    if bytes_of(_text(part)) <= most:
        return part
    match part:
        case Text(text=text):
            # A signature holds for the whole text only.
            return Text(clip(text, most))
        case Return(text=text):
            return replace(part, text=clip(text, most, _RETURN_HINT))
        case Call(arguments=arguments):
            return replace(part, arguments=clip_arguments(arguments, most))
        case _:
            return part


def _with_short_return(message: Message) -> Message:
    return replace(in_words(message), parts=tuple(_cut(part, OLD_RETURN_BYTES) for part in in_words(message).parts))


def _with_clamped_returns(message: Message, window: int) -> Message:
    def clamped(part: Part) -> Part:
        return replace(part, text=clamp_return(part.text, window)) if isinstance(part, Return) else part

    parts = tuple(map(clamped, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _part_in_words(part: Part) -> Part:
    match part:
        case Image():
            return A_PICTURE
        case Return(text=text, images=images) if images:
            return replace(part, text="\n".join([text, *[A_PICTURE.text] * len(images)]), images=())
        case _:
            return part


def _without_thoughts(message: Message) -> Message:
    kept = tuple(part for part in message.parts if not isinstance(part, Reasoning | RedactedReasoning))
    return replace(message, parts=kept)
