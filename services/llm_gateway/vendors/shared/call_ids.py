"""Ids of tool calls that a dialect accepts, in a history that may come from any other. Pure.

A history holds what its models' vendors gave: of any length and alphabet, and unique only within one message. An
agent may change its model, and a fallback may answer, so ids are made valid for the model that is asked next. They
depend on the messages before alone, so that a growing history stays the same at its beginning, as caches need it.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.llm_gateway.core.chat import Message, Part, Role, ToolCall, ToolResult

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class IdShape:
    """The ids that a dialect accepts: `pattern` matches a whole id; a made one is `prefix` and `length` letters and
    digits.
    """

    pattern: re.Pattern[str]
    length: int
    prefix: str = "call_"

    def made_of(self, seed: str) -> str:
        """Returns an id of this shape that depends on the seed alone."""
        number = int.from_bytes(hashlib.sha256(seed.encode()).digest())
        letters = []
        for _ in range(self.length):
            number, digit = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[digit])
        return self.prefix + "".join(letters)


OPENAI = IdShape(re.compile(r"[!-~]{1,40}"), 24)
ANTHROPIC = IdShape(re.compile(r"[a-zA-Z0-9_-]{1,64}"), 24, "toolu_")
MISTRAL = IdShape(re.compile(r"[a-zA-Z0-9]{9}"), 9, "")
# Servers that speak a vendor's dialect and say nothing of ids: what they gave themselves is kept.
ANY = IdShape(re.compile(r"[!-~]{1,128}"), 24)


def with_valid_ids(messages: Sequence[Message], shape: IdShape) -> Sequence[Message]:
    """Returns the messages with call ids of that shape, unique among them all, and results under the ids of their
    calls.

    The same sequence where nothing had to change.
    """
    if _is_valid(messages, shape):
        return messages
    return list(_rewritten(messages, shape))


def _is_valid(messages: Sequence[Message], shape: IdShape) -> bool:
    seen: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.id in seen or shape.pattern.fullmatch(part.id) is None:
                    return False
                seen.add(part.id)
            elif isinstance(part, ToolResult) and shape.pattern.fullmatch(part.tool_call_id) is None:
                return False
    return True


def _rewritten(messages: Sequence[Message], shape: IdShape) -> Iterator[Message]:
    used: set[str] = set()
    # By the original id: the new ids of its calls that have no result yet, oldest first.
    waiting: dict[str, deque[str]] = {}
    answered: dict[str, str] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            # What nobody answered is answered no more.
            waiting.clear()
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                id = _unused_id(part.id, shape, used)
                waiting.setdefault(part.id, deque()).append(id)
                parts.append(replace(part, id=id))
            elif isinstance(part, ToolResult):
                parts.append(replace(part, tool_call_id=_answer_id(part.tool_call_id, shape, waiting, answered)))
            else:
                parts.append(part)
        yield replace(message, parts=parts)


def _unused_id(id: str, shape: IdShape, used: set[str]) -> str:
    chosen, again = id, 0
    while chosen in used or shape.pattern.fullmatch(chosen) is None:
        chosen = shape.made_of(f"{again}:{id}")
        again += 1
    used.add(chosen)
    return chosen


def _answer_id(id: str, shape: IdShape, waiting: dict[str, deque[str]], answered: dict[str, str]) -> str:
    """Returns the new id of the call that this result answers; a second result, or one without a call, gets the last or
    its own.
    """
    if waiting.get(id):
        answered[id] = waiting[id].popleft()
    if id in answered:
        return answered[id]
    return id if shape.pattern.fullmatch(id) else shape.made_of(f"0:{id}")
