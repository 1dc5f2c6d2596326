"""Another text for a stored message: what of it changes, and what does not. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, assert_never

import orjson

from services.agent.core.messages import Call, Image, Message, Part, Reasoning, Text
from services.common.core.refusals import Refused

# What a message is shown as.
Kind = Literal["system", "user", "assistant", "reasoning"]
# By this tool's argument older agents speak.
SPEAKING, SPOKEN = "send_message", "message"


def edit(message: Message, kind: Kind, content: Sequence[Part]) -> Message:
    """Returns the message with another text: `content` is text, of a user's message pictures, too.

    Raises Refused (MESSAGE_INVALID) where it has no text of that kind.
    """
    match kind:
        case "user" | "system":
            if message.role != kind:
                raise _other_kind(message, kind)
            return replace(message, parts=tuple(content))
        case "assistant":
            return replace(message, parts=_assistant(message, _text(content)))
        case "reasoning":
            thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
            if message.role != "assistant" or not thoughts:
                raise _other_kind(message, kind)
            # A signature is of the thoughts that it was made for.
            new = Reasoning(_text(content), prompted=thoughts[0].prompted)
            return replace(message, parts=_in_place(message.parts, _is_thought, new))
    assert_never(kind)


def _assistant(message: Message, text: str) -> tuple[Part, ...]:
    if message.role == "assistant":
        if any(map(_is_content, message.parts)):
            return _in_place(message.parts, _is_content, Text(text))
        for place, part in enumerate(message.parts):
            if isinstance(part, Call) and (call := _saying(part, text)) is not None:
                return (*message.parts[:place], call, *message.parts[place + 1 :])
    raise _other_kind(message, "assistant")


def _saying(call: Call, text: str) -> Call | None:
    """Returns the call with other words; None where it is not one that speaks."""
    if call.name != SPEAKING:
        return None
    try:
        values = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(values, dict) or not isinstance(values.get(SPOKEN), str):
        return None
    return replace(call, arguments=orjson.dumps(values | {SPOKEN: text}).decode())


def _in_place(parts: Sequence[Part], is_old: Callable[[Part], bool], new: Part) -> tuple[Part, ...]:
    """Returns the parts with `new` where the first old one was, and without the others."""
    first = next(place for place, part in enumerate(parts) if is_old(part))
    return (*parts[:first], new, *(part for part in parts[first:] if not is_old(part)))


def _is_content(part: Part) -> bool:
    return isinstance(part, Text | Image)


def _is_thought(part: Part) -> bool:
    return isinstance(part, Reasoning)


def _text(content: Sequence[Part]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def _other_kind(message: Message, kind: Kind) -> Refused:
    sentence = f"message-{message.id} is of the role {message.role} and has no {kind} text that could be changed"
    return Refused("MESSAGE_INVALID", sentence)
