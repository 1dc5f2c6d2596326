"""Histories of all kinds for the tests of context and compaction: one byte makes one event of a conversation."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID

from hypothesis import strategies as st

from services.agent.core.messages import (
    Call,
    Decision,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Role,
    Text,
    calls_of,
)
from services.agent.core.summaries.summary import pack
from services.agent.core.window.compaction import CompactionStats, Trigger
from services.agent.core.window.sizes import estimate, weight

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = (2, 60, 700, 6_000, 40_000)
ALPHABETS = (
    "plain words and 123 ",
    "你好，世界。",
    "🎉👩‍👩‍👧‍👦",
    "e\u0301a\u0308o\u0302 ",
    '{"a": [1, "x\\n"]}, ',
    "\u202e\u0000\ud83d ",
)
STATS = CompactionStats(Trigger.MANUAL, 9, 8, 7, 6, 5)


def message(number: int, role: Role, *parts: Part) -> Message:
    """The conversation's message with this number, and time."""
    return Message(UUID(int=(number + 1) << 64), role, parts, NOW + timedelta(minutes=number), UUID(int=number // 9))


def call(call_id: str, arguments: str = "{}", *, gated: bool = False) -> Call:
    return Call(f"key-{call_id}", call_id, "roll", arguments, "approval" if gated else "")


def answer(call_id: str, text: str = "4") -> Return:
    return Return(call_id, "roll", text)


def summary(number: int, text: str) -> Message:
    """A packed summary."""
    return message(number, "summary", Text(pack(text, at=NOW, stats=STATS)))


@cache
def text(kind: int, size: int) -> str:
    """A text of a size: letters of every width, and halves of surrogate pairs."""
    alphabet = ALPHABETS[kind % len(ALPHABETS)]
    length = SIZES[size % len(SIZES)]
    return (alphabet * (length // len(alphabet) + 1))[:length]


def history(events: Iterable[int], *, summarised: bool = False, pending: bool = False) -> list[Message]:
    """A stored history: an earlier summary if it is `summarised`, then the events, and calls that wait near its end."""
    made = [summary(0, text(1, 2))] if summarised else []
    for place, event in enumerate(events):
        made += [
            replace(each, id=UUID(int=(len(made) + number + 1) << 64))
            for number, each in enumerate(_event(event, place))
        ]
    if pending:
        made.append(message(len(made), "assistant", Text("May I?"), call("p", gated=True), call("q")))
        # What was said meanwhile answers nothing.
        made += [message(len(made), "user", Text("hm"))] * (len(made) % 2)
    return made


def _event(event: int, place: int) -> list[Message]:
    kind, size = event % 16, event // 16
    words, longer = text(place, size), text(place + 1, size + 1)

    def said(role: Role, *parts: Part) -> Message:
        return message(place, role, *parts)

    match kind:
        case 0 | 1:
            return [said("user", Text(words))]
        case 2:
            return [said("user", Text(words), Image("A" * (4 << 20 if size == 15 else 400), media_type="image/png"))]
        case 3 | 4:
            return [said("assistant", Text(longer, "signed"))]
        case 5:
            return [said("assistant", Reasoning(words, "s" * 90), RedactedReasoning("r" * 90), Text(longer))]
        case 6 | 7:
            return [said("assistant", call("a", _arguments(words))), said("tool", answer("a", longer))]
        case 8:
            ids = ("a", "b", "b", "c", "d")
            calls = said("assistant", Text(""), Reasoning("so", "s"), *(call(each) for each in ids))
            return [calls, said("tool", *(answer(each, f"{number} {words}") for number, each in enumerate(ids)))]
        case 9:
            return [said("assistant", Text("wait"), call("i"), call("j")), said("tool", answer("j", words))]
        case 10:
            asked = said("assistant", call("g", gated=True), call("h"))
            answered = said("approval", Decision("g", approve=bool(size % 2), reason=words[:99]))
            return [asked, answered, said("tool", answer("g", words), answer("h", longer))]
        case 11:
            return [said("assistant", call("x", gated=True)), said("approval", Decision("x", reason="no"))]
        case 12:
            return [said("assistant", call("k")), said("user", Text("hurry")), said("tool", answer("k", longer))]
        case 13:
            return [said("tool", answer("stray", words))]
        case 14:
            return [said("assistant"), said("user", Text("")), said("system", Text(words))]
        case _:
            picture = Return("l", "look", words, images=(Image("A" * 900, media_type="image/png"),))
            return [said("assistant", call("l")), said("tool", picture)]


def _arguments(words: str) -> str:
    clean = words.encode(errors="replace").decode().replace('"', "'").replace("\\", "/").replace("\0", "")
    return f'{{"path": "a.txt", "content": "{clean}"}}'


@dataclass(frozen=True)
class Story:
    """The plan of a generated history; a failing test shows this instead of the messages."""

    events: bytes
    summarised: bool
    pending: bool

    def history(self) -> list[Message]:
        return history(self.events, summarised=self.summarised, pending=self.pending)


stories = st.builds(
    Story,
    # Short ones, and now and then one that is long.
    st.one_of(st.binary(max_size=12), st.binary(min_size=12, max_size=60)),
    st.booleans(),
    st.booleans(),
)


def sound(sent: list[Message]) -> bool:
    """Returns whether every provider takes it: no empty parts, each call answered once and directly, unique ids."""
    ids = [each.id for one in sent for each in calls_of(one)]
    return (
        len(ids) == len(set(ids))
        and all(one.parts and Text() not in one.parts and one.role != "approval" for one in sent)
        and all(_returned(one) == _called(before) for before, one in zip([None, *sent], [*sent, None], strict=True))
    )


def tokens(sent: Iterable[Message]) -> int:
    return sum(map(estimate, sent))


def load(sent: Iterable[Message]) -> int:
    return sum(map(weight, sent))


def _called(before: Message | None) -> list[str]:
    return [] if before is None else [each.id for each in calls_of(before)]


def _returned(one: Message | None) -> list[str]:
    return [] if one is None else [part.call_id for part in one.parts if isinstance(part, Return)]
