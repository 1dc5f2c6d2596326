"""What the model is shown of the history: always sendable, never larger than the window. Pure.

Whatever is stored (a call whose run was cancelled, a return whose call is out of the window, an empty message),
what `sendable` gives can be sent to every provider: each call is answered by exactly one return, directly after
it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import assert_never
from uuid import UUID

from services.agent.messages import (
    Call,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    calls_of,
)

UNANSWERED = "This call was interrupted before it returned. It may or may not have taken effect."
# Estimate for English text and JSON; the window is not filled to the brim because of it.
CHARACTERS_PER_TOKEN = 4
IMAGE_TOKENS = 1_500
MESSAGE_TOKENS = 8
# Part of the window that history may fill; the rest is for the reply and for the estimate's error.
FILL = 0.85


def sendable(history: Iterable[Message]) -> list[Message]:
    """The history with every call answered once and directly, without stray returns and empty messages."""
    messages = list(history)
    sent: list[Message] = []
    for place, message in enumerate(messages):
        if message.role == "tool" or not message.parts:
            continue
        sent.append(message)
        if calls := calls_of(message):
            sent.append(_returns(message, calls, _answers(messages[place + 1 :])))
    return sent


def fit(history: Sequence[Message], *, window: int, fixed: int) -> list[Message]:
    """The newest messages that fit into `window` tokens beside `fixed` tokens of prompt and tools.

    The newest message always stays. A call is never parted from its return. A marker says what was left out.
    """
    room = int(window * FILL) - fixed
    kept: list[Message] = []
    for message in reversed(history):
        room -= estimate(message)
        if room < 0 and kept and kept[-1].role != "tool":
            break
        kept.append(message)
    kept.reverse()
    dropped = len(history) - len(kept)
    return [_marker(kept[0], dropped), *kept] if dropped else kept


def estimate(message: Message) -> int:
    """Tokens of a message, roughly."""
    return MESSAGE_TOKENS + sum(map(_estimate_part, message.parts))


def estimate_text(text: str) -> int:
    """Tokens of a text, roughly."""
    return len(text) // CHARACTERS_PER_TOKEN + 1


def _estimate_part(part: Part) -> int:
    match part:
        case Text(text=text) | Reasoning(text=text) | Return(text=text):
            return estimate_text(text)
        case RedactedReasoning(data=data):
            return estimate_text(data)
        case Call():
            return estimate_text(part.name) + estimate_text(part.arguments)
        case Image():
            return IMAGE_TOKENS
    assert_never(part)


def _answers(later: Sequence[Message]) -> dict[str, Return]:
    """The returns up to the next message with calls: providers use a call's id again in later messages."""
    answers: dict[str, Return] = {}
    for message in takewhile(lambda message: not calls_of(message), later):
        answers |= {part.call_id: part for part in message.parts if isinstance(part, Return)}
    return answers


def _returns(message: Message, calls: Sequence[Call], answers: dict[str, Return]) -> Message:
    returns = tuple(answers.get(call.id) or Return(call.id, call.name, UNANSWERED, is_error=True) for call in calls)
    return replace(message, id=UUID(int=message.id.int ^ 1), role="tool", parts=returns)


def _marker(first: Message, dropped: int) -> Message:
    sentence = (
        f"[{dropped} earlier messages do not fit into the window and are not shown here. "
        "They are stored: conversation_search finds them.]"
    )
    return Message(UUID(int=0), "user", (Text(sentence),), first.created_at)
