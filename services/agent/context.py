"""What the model is shown of the history: always sendable, never larger than the window. Pure.

Whatever is stored (a call whose run was cancelled, a return whose call is out of the window, an empty message),
what `sendable` gives can be sent to every provider: each call is answered by exactly one return, directly after
it.
"""

from collections.abc import Iterable, Iterator, Sequence
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
A_PICTURE = Text("[a picture was here]")
# Estimate that holds for dense JSON, and for Chinese (a token or so per character, of 3 bytes), too.
BYTES_PER_TOKEN = 3
IMAGE_TOKENS = 1_500
MESSAGE_TOKENS = 8
# Part of the window that history may fill; the rest is for the reply and for the estimate's error.
FILL = 0.85
# Pictures are heavier than their tokens: below gRPC's 32 MiB, with space for prompt and tools.
MOST_BYTES = 24 * 1024 * 1024
# How often a model that refuses a history is shown less of it at most.
SHORTENINGS = 4


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


def shortenings(history: Sequence[Message], *, window: int, fixed: int, run_id: UUID) -> Iterator[list[Message]]:
    """What to show of a sendable history: all that fits, then, for a model that refuses that, less and less.

    First the pictures of other runs than `run_id` go, then half of the room, and half again: at most SHORTENINGS
    times, and nothing twice in succession. See `fit` for window and fixed.
    """
    plain = without_pictures(history, keep_run=run_id)
    shown = fit(plain if sum(map(weight, history)) > MOST_BYTES else history, window=window, fixed=fixed)
    yield shown
    for halvings in range(SHORTENINGS):
        less = fit(plain, window=window, fixed=fixed, share=2**halvings)
        if less != shown:
            yield less
        shown = less


def without_pictures(history: Sequence[Message], *, keep_run: UUID) -> list[Message]:
    """The history with a few words instead of each picture that another run than `keep_run` brought."""
    return [message if message.run_id == keep_run else _in_words(message) for message in history]


def fit(history: Sequence[Message], *, window: int, fixed: int, share: int = 1) -> list[Message]:
    """The newest messages that fit into `window` tokens beside `fixed` tokens of prompt and tools, and are not too
    heavy to send. With a `share` of n they get an nth of the room.

    The newest message always stays. A call is never parted from its return. A marker says what was left out.
    """
    room, load = (int(window * FILL) - fixed) // share, MOST_BYTES // share
    kept: list[Message] = []
    for message in reversed(history):
        room -= estimate(message)
        load -= weight(message)
        if min(room, load) < 0 and kept and kept[-1].role != "tool":
            break
        kept.append(message)
    kept.reverse()
    dropped = len(history) - len(kept)
    return [_marker(kept[0], dropped), *kept] if dropped else kept


def weight(message: Message) -> int:
    """Bytes of a message on the wire, roughly."""
    return sum(map(_weight_of_part, message.parts))


def estimate(message: Message) -> int:
    """Tokens of a message, roughly."""
    return MESSAGE_TOKENS + sum(map(_estimate_part, message.parts))


def estimate_text(text: str) -> int:
    """Tokens of a text, roughly."""
    return _bytes_of(text) // BYTES_PER_TOKEN + 1


def _estimate_part(part: Part) -> int:
    return IMAGE_TOKENS if isinstance(part, Image) else _weight_of_part(part) // BYTES_PER_TOKEN + 1


def _weight_of_part(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return _bytes_of(part.text) + len(part.signature)
        case Return(text=text):
            return _bytes_of(text)
        case RedactedReasoning(data=data):
            return len(data)
        case Call():
            return _bytes_of(part.name) + _bytes_of(part.arguments)
        case Image():
            # base64 here, bytes on the wire.
            return len(part.data) * 3 // 4 + len(part.url)
    assert_never(part)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _in_words(message: Message) -> Message:
    if not any(isinstance(part, Image) for part in message.parts):
        return message
    return replace(message, parts=tuple(A_PICTURE if isinstance(part, Image) else part for part in message.parts))


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
