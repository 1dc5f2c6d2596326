"""The sizes of messages and texts, and texts cut to a size. Pure.

Sizes are estimates that hold for dense JSON, and for Chinese (a token or so per character, of 3 bytes), too. Every
cut leaves a marker with the number of characters that it took.
"""

from collections.abc import Iterable
from typing import Any, assert_never

import orjson

from services.agent.core.messages import (
    Call,
    Decision,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
)

BYTES_PER_TOKEN = 3
IMAGE_TOKENS = 1_500
MESSAGE_TOKENS = 8
# What a call or a return costs beside its texts: an id and braces.
CALL_TOKENS = 8
# A tool return may fill this part of the window, at 4 characters per token; LETTA V1 API, tool returns.
RETURN_SHARE = 0.2
LEAST_RETURN_CHARS = 5_000
# Of a tool's return so many characters are stored.
MOST_RETURN_CHARS = 1024 * 1024
STORED = "conversation_search finds their words"


def weight(message: Message) -> int:
    """Returns bytes of a message on the wire, roughly."""
    return _size(message)[1]


def estimate(message: Message) -> int:
    """Returns tokens of a message, roughly."""
    return _size(message)[0]


def measure(messages: Iterable[Message]) -> tuple[int, int]:
    """Returns tokens of messages, and their bytes on the wire; both roughly."""
    tokens = load = 0
    for message in messages:
        size = _size(message)
        tokens += size[0]
        load += size[1]
    return tokens, load


def estimate_text(text: str) -> int:
    """Returns tokens of a text, roughly."""
    return bytes_of(text) // BYTES_PER_TOKEN + 1


def bytes_of(text: str) -> int:
    """Returns bytes of a text; half a surrogate pair, which UTF-8 has no place for, counts too."""
    return len(text) if text.isascii() else len(_encode(text))


def bytes_for(tokens: int) -> int:
    """Returns the longest text, in bytes, whose estimate is `tokens`."""
    return max(tokens * BYTES_PER_TOKEN - 1, 0)


def clip(text: str, most: int, hint: str = STORED) -> str:
    """Returns the text in at most `most` bytes: cut in its middle, with a marker that gives the `hint`."""
    size = bytes_of(text)
    if size <= most:
        return text
    # The marker is longest when it counts all.
    room = most - bytes_of(omission_marker(len(text), hint))
    if room <= 0:
        return head(omission_marker(len(text), hint).strip(), most)
    first = head(text, room - room // 3)
    last = _tail(text, room // 3)
    return f"{first}{omission_marker(len(text) - len(first) - len(last), hint)}{last}"


def clip_chars(text: str, most: int | None, hint: str = STORED) -> str:
    """Returns the text in at most `most` characters, cut as by `clip`; whole for None or less than 1."""
    if most is None or most <= 0 or len(text) <= most:
        return text
    room = most - len(omission_marker(len(text), hint))
    if room <= 0:
        return text[:most]
    first, last = text[: room - room // 3], text[len(text) - room // 3 :]
    return f"{first}{omission_marker(len(text) - len(first) - len(last), hint)}{last}"


def clip_arguments(arguments: str, most: int) -> str:
    """Returns a call's arguments in at most `most` bytes (2 at least), a JSON object whose longest values are cut."""
    if bytes_of(arguments) <= most:
        return arguments
    try:
        values = orjson.loads(arguments)
        size = most if isinstance(values, dict) else 0
        while size := size // 2:
            cut = orjson.dumps({name: _clip_value(value, size) for name, value in values.items()})
            if len(cut) <= most:
                return cut.decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        # Not JSON, or nested too deeply: nothing of it can be cut out and stay JSON.
        return "{}"
    return "{}"


def clamp_return(text: str, window: int) -> str:
    """Returns a tool's return in the characters that one may have in a window of so many tokens."""
    hint = f"ask the tool for less at a time; {STORED}"
    return clip_chars(text, max(LEAST_RETURN_CHARS, int(window * RETURN_SHARE * 4)), hint)


def storable_return(text: str) -> str:
    """Returns a tool's return in the characters that are stored of one."""
    return clip_chars(text, MOST_RETURN_CHARS, "a return is stored up to this length; ask the tool for less at a time")


def level(sizes: Iterable[int], room: int) -> int:
    """Returns the largest size that each can have at most so that all together need `room` at most: the longest lose
    first.
    """
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        many = len(ordered) - place
        if size * many > room:
            return max(room // many, 0)
        room -= size
    return ordered[-1] if ordered else 0


def _size(message: Message) -> tuple[int, int]:
    """Returns tokens and bytes of a message, which never changes: it is measured once and asked for at each step."""
    if message.size is None:
        tokens, load = MESSAGE_TOKENS, 0
        for part in message.parts:
            size = _weight_of_part(part)
            tokens += _tokens_of_part(part, size)
            load += size
        object.__setattr__(message, "size", (tokens, load))
        return tokens, load
    return message.size


def _tokens_of_part(part: Part, size: int) -> int:
    match part:
        case Text() | Reasoning() | RedactedReasoning() | Decision():
            return size // BYTES_PER_TOKEN + 1
        case Call():
            return size // BYTES_PER_TOKEN + 1 + CALL_TOKENS
        case Return(text=text, images=images):
            return bytes_of(text) // BYTES_PER_TOKEN + 1 + CALL_TOKENS + IMAGE_TOKENS * len(images)
        case Image():
            return IMAGE_TOKENS
    assert_never(part)


def _weight_of_part(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return bytes_of(part.text) + len(part.signature)
        case Return(text=text, images=images):
            return bytes_of(text) + sum(map(_weight_of_part, images))
        case RedactedReasoning(data=data):
            return len(data)
        case Call():
            return bytes_of(part.name) + bytes_of(part.arguments)
        case Decision(reason=reason):
            return bytes_of(reason)
        case Image():
            return len(part.data) + len(part.url)
    assert_never(part)


def _clip_value(value: Any, most: int) -> Any:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if bytes_of(text) <= most else clip(text, most)


def omission_marker(characters: int, hint: str) -> str:
    """Returns what stands where characters were left out; `hint`: how to see them."""
    return f"\n[... {characters:,} characters are left out here; {hint} ...]\n"


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def head(text: str, most: int) -> str:
    """Returns the longest beginning that has at most `most` bytes."""
    # A character has 4 bytes at most: what is beyond needs not be encoded.
    return _decode(_encode(text[:most])[:most])


def _tail(text: str, most: int) -> str:
    return _decode(_encode(text[-most:])[-most:]) if most else ""


def _decode(cut: bytes) -> str:
    """Returns the characters that are whole in `cut`, whatever was cut off at its ends."""
    start = next((place for place, byte in enumerate(cut[:4]) if byte & 0xC0 != 0x80), len(cut))
    for end in range(len(cut), max(len(cut) - 4, start - 1), -1):
        try:
            return cut[start:end].decode(errors="surrogatepass")
        except UnicodeDecodeError:
            continue
    return ""
