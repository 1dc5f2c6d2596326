"""Every stored history is sendable, and fits."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.context import (
    MOST_BYTES,
    SHORTENINGS,
    UNANSWERED,
    fit,
    sendable,
    shortenings,
    without_pictures,
)
from services.agent.messages import Call, Image, Message, Part, Return, Role, Text, calls_of
from services.agent.shrinking import A_PICTURE
from services.agent.sizes import estimate, estimate_text

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN, EARLIER = UUID(int=1), UUID(int=2)


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


def test_the_newest_message_is_cut_in_its_middle() -> None:
    giant = message("user", Text(f"first {'x' * 1_000_000} last"))
    (text,) = fit([HI, giant], window=1_000, fixed=0)[-1].parts
    assert isinstance(text, Text)
    assert text.text.startswith("first xxx")
    assert text.text.endswith("xxx last")
    assert "characters are left out here; conversation_search finds" in text.text


def picture(run_id: UUID, size: int = 400) -> Message:
    return replace(message("user", Text("look"), Image("A" * size, media_type="image/png")), run_id=run_id)


def has_picture(each: Message) -> bool:
    return any(isinstance(part, Image) for part in each.parts)


def test_pictures_of_earlier_runs_become_words() -> None:
    old, new = picture(EARLIER), picture(RUN)
    assert without_pictures([old, HI, new], keep_run=RUN) == [replace(old, parts=(Text("look"), A_PICTURE)), HI, new]


def test_what_is_too_heavy_to_send_is_dropped_from_the_front() -> None:
    heavy = picture(EARLIER, 20 * 1024 * 1024)
    kept = fit([heavy, heavy, HI], window=1_000_000, fixed=0)
    assert kept[1:] == [heavy, HI]
    assert fit([heavy], window=1_000_000, fixed=0) == [heavy]
    assert fit([heavy], window=1_000_000, fixed=0, share=8) == [replace(heavy, parts=(Text("look"), A_PICTURE))]


def test_pictures_that_are_too_heavy_together_are_not_shown() -> None:
    heavy = picture(EARLIER, 20 * 1024 * 1024)
    first = next(shortenings([HI, heavy, heavy, HI], window=128_000, fixed=0, run_id=RUN))
    assert len(first) == 4
    assert not any(map(has_picture, first))
    assert MOST_BYTES < 32 * 1024 * 1024


@pytest.mark.parametrize("text", ["你好" * 3_000, '{"a":1},' * 3_000])
def test_dense_text_is_not_underestimated(text: str) -> None:
    # cl100k_base: 2 and 4 tokens for a repetition.
    assert estimate_text(text) >= 0.66 * 3_000 * (2 if "你" in text else 4)


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        ([HI], [1]),
        # With a half of the room the picture is words.
        ([HI, picture(RUN)], [2, 2]),
        # Another picture of an earlier run: the same without it.
        ([picture(EARLIER), HI], [2, 2]),
        # 400 tokens each in a room of 3,400.
        ([message("user", Text("x" * 1_176))] * 20, [9, 5, 3, 2]),
    ],
)
def test_a_refused_history_is_shown_shorter_each_time(history: list[Message], shown: list[int]) -> None:
    steps = list(shortenings(history, window=4_000, fixed=0, run_id=RUN))
    assert [len(step) for step in steps] == shown
    assert all(step[-1].parts[0] == history[-1].parts[0] for step in steps)
    assert not any(has_picture(each) for step in steps[1:] for each in step if each.run_id != RUN)


ids = st.sampled_from(["a", "b", "c"])
messages = st.one_of(
    st.just(HI),
    st.lists(ids, unique=True, max_size=3).map(lambda chosen: message("assistant", *map(call, chosen))),
    st.lists(ids, max_size=3).map(lambda chosen: message("tool", *map(answer, chosen))),
    st.text(max_size=300).map(lambda text: message("assistant", Text(text))),
)


@given(st.lists(messages, min_size=1, max_size=20), st.integers(50, 3_000))
def test_nothing_is_asked_twice(history: list[Any], window: int) -> None:
    steps = list(shortenings(sendable([*history, HI]), window=window, fixed=0, run_id=RUN))
    assert len(steps) <= 1 + SHORTENINGS
    assert all(one != other for one, other in pairwise(steps))
