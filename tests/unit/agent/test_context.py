"""Every stored history is sendable, and fits."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from services.agent.context import UNANSWERED, estimate, fit, sendable
from services.agent.messages import Call, Message, Part, Return, Role, Text, calls_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def message(role: Role, *parts: Part) -> Message:
    return Message(UUID(int=7 << 64), role, parts, NOW)


def call(call_id: str) -> Call:
    return Call(f"key-{call_id}", call_id, "roll", "{}")


def answer(call_id: str, text: str = "4") -> Return:
    return Return(call_id, "roll", text)


HI = message("user", Text("hi"))


def roles(history: list[Message]) -> list[str]:
    return [each.role for each in history]


def test_a_sound_history_stays() -> None:
    history = [HI, message("assistant", call("a")), message("tool", answer("a")), message("assistant", Text("4"))]
    assert [each.parts for each in sendable(history)] == [each.parts for each in history]


def test_a_call_without_return_gets_one() -> None:
    fixed = sendable([HI, message("assistant", call("a"), call("b")), message("tool", answer("b")), HI])
    assert roles(fixed) == ["user", "assistant", "tool", "user"]
    assert fixed[2].parts == (Return("a", "roll", UNANSWERED, is_error=True), answer("b"))


def test_strays_and_empty_messages_are_dropped() -> None:
    assert roles(sendable([message("tool", answer("x")), HI, message("assistant")])) == ["user"]


def test_ids_that_a_provider_uses_again_are_not_mixed_up() -> None:
    history = [HI]
    for text in ("1", "2"):
        history += [message("assistant", call("a")), message("tool", answer("a", text))]
    given_back = [part.text for each in sendable(history) for part in each.parts if isinstance(part, Return)]
    assert given_back == ["1", "2"]


def test_what_does_not_fit_is_dropped_from_the_front_with_a_marker() -> None:
    long = message("user", Text("x" * 4_000))
    kept = fit([long] * 10 + [HI], window=4_000, fixed=100)
    assert 1 < len(kept) < 11
    assert "earlier messages" in str(kept[0].parts)
    assert kept[-1] is HI


def test_the_newest_message_stays_whatever_its_size() -> None:
    giant = message("user", Text("x" * 1_000_000))
    assert fit([HI, giant], window=1_000, fixed=0)[-1] is giant


ids = st.sampled_from(["a", "b", "c"])
messages = st.one_of(
    st.just(HI),
    st.lists(ids, unique=True, max_size=3).map(lambda chosen: message("assistant", *map(call, chosen))),
    st.lists(ids, max_size=3).map(lambda chosen: message("tool", *map(answer, chosen))),
    st.text(max_size=300).map(lambda text: message("assistant", Text(text))),
)


@given(st.lists(messages, max_size=20), st.integers(50, 3_000))
def test_any_history_is_sendable(history: list[Any], window: int) -> None:
    sent = fit(sendable(history), window=window, fixed=0)
    for place, each in enumerate(sent):
        assert each.parts
        if calls := calls_of(each):
            after = sent[place + 1]
            assert [part.call_id for part in after.parts if isinstance(part, Return)] == [one.id for one in calls]
        if each.role == "tool":
            assert calls_of(sent[place - 1])
    assert sum(map(estimate, sent[2:-2])) <= window
