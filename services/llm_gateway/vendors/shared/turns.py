"""A history as turns of two speakers, for wires where they must alternate. Pure.

Such a wire has no messages of its own for results of tools: they come first in the user's message. It begins and ends
with the user. Blocks are the wire's own.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from services.llm_gateway.core.chat import Message, Part, Role, Text

Block = dict[str, Any]


def alternating(
    messages: Iterable[Message],
    blocks_of: Callable[[Sequence[Part]], Iterable[Block]],
    is_result: Callable[[Block], bool],
    text: Callable[[str], Block],
) -> list[dict[str, Any]]:
    """Returns [{"role": "user" | "assistant", "content": [block, ...]}, ...] without the system's messages and empty
    ones.
    """
    merged: list[dict[str, Any]] = []
    for message in messages:
        blocks = [] if message.role is Role.SYSTEM else list(blocks_of(message.parts))
        if not blocks:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if merged and merged[-1]["role"] == role:
            blocks = merged.pop()["content"] + blocks
        merged.append({"role": role, "content": sorted(blocks, key=lambda block: not is_result(block))})
    if merged and merged[0]["role"] == "assistant":
        merged.insert(0, {"role": "user", "content": [text("(The conversation begins earlier.)")]})
    if merged and merged[-1]["role"] == "assistant":
        merged.append({"role": "user", "content": [text("(Continue.)")]})
    return merged


def instructions(messages: Iterable[Message]) -> list[str]:
    """Returns the system's texts, without empty ones."""
    parts = (part for message in messages if message.role is Role.SYSTEM for part in message.parts)
    return [part.text for part in parts if isinstance(part, Text) and part.text.strip()]
