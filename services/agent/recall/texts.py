"""What of a message is embedded. Pure."""

from collections.abc import Sequence
from math import hypot, isfinite

from services.agent.messages import Call, Message, Part, Return, searchable

# A summary repeats what it stands for, a client's answers show in the returns that came of them, and the prompt is
# in every window.
EMBEDDED_ROLES = ("user", "assistant", "tool")
SEARCH_TOOL = "conversation_search"
# Embedding models read about 8,000 tokens; this many UTF-8 bytes are fewer in every language.
_EMBEDDED_BYTES = 20_000
_HEARTBEAT = '{"type": "heartbeat"'


def to_embed(message: Message) -> str:
    """The text that a message's vector stands for, at most 20,000 bytes; empty for one that is found by words alone.

    What an agent searched for, and what it was shown, would be the best answer to the same question ever after.
    """
    if message.role not in EMBEDDED_ROLES:
        return ""
    said = "\n".join(filter(None, map(_said, message.parts))).strip()
    if message.role == "user" and said.startswith(_HEARTBEAT):
        return ""
    encoded = said.encode()
    return said if len(encoded) <= _EMBEDDED_BYTES else encoded[:_EMBEDDED_BYTES].decode(errors="ignore")


def _said(part: Part) -> str:
    if isinstance(part, Call | Return) and part.name == SEARCH_TOOL:
        return ""
    return searchable(part)


def unit_vector(values: Sequence[float]) -> list[float] | None:
    """The vector at length 1, which fits 16-bit floats; None for a zero vector, which has no direction.

    Raises ValueError when a component is not a finite number.
    """
    length = hypot(*values)
    if not isfinite(length):
        raise ValueError("a component is not a finite number")
    return [value / length for value in values] if length else None
