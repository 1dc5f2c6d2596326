"""Every stored history is sendable, and fits."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.messages import Call, Decision, Image, Message, Part, Return, Role, Text, calls_of
from services.agent.core.window.context import (
    DENIED,
    MOST_BYTES,
    NEVER_ALLOWED,
    SHORTENINGS,
    UNANSWERED,
    WAITING,
    fit,
    sendable,
    shortenings,
    waiting_place,
    without_pictures,
)
from services.agent.core.window.shrinking import A_PICTURE, FRESH, OLD_RETURN_BYTES
from services.agent.core.window.sizes import estimate_text
from services.common.grpc_limits import MAX_MESSAGE_BYTES

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


def gated(call_id: str) -> Call:
    return replace(call(call_id), gate="approval")


def said_of(history: list[Message]) -> list[str]:
    return [part.text for each in sendable(history) for part in each.parts if isinstance(part, Return)]


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ([], [WAITING, WAITING]),
        # What the user says meanwhile is no answer.
        ([HI], [WAITING, WAITING]),
        ([message("approval", Decision("a", approve=True))], [UNANSWERED, UNANSWERED]),
        ([message("approval", Decision("a", reason="Too dear."))], [f"{DENIED} Too dear.", UNANSWERED]),
        # A decision that names no call answers all, and the first answer counts.
        ([message("approval", Decision("", approve=True))], [UNANSWERED, UNANSWERED]),
        ([message("approval", Decision("", approve=True)), HI], [UNANSWERED, UNANSWERED]),
        ([message("approval", Decision("", reason="Too dear."))], [f"{DENIED} Too dear.", UNANSWERED]),
        (
            [message("approval", Decision("a", approve=True)), message("approval", Decision("", reason="Late."))],
            [UNANSWERED, UNANSWERED],
        ),
        ([message("approval", answer("a", "from the client"))], ["from the client", UNANSWERED]),
        (
            [message("approval", answer("a", "as sent")), message("tool", answer("a", "as kept"), answer("b"))],
            ["as kept", "4"],
        ),
    ],
)
def test_calls_that_wait_for_the_client(later: list[Message], said: list[str]) -> None:
    history = [HI, message("assistant", gated("a"), call("b")), *later]
    assert said_of(history) == said
    assert "approval" not in roles(sendable(history))


def test_calls_of_long_ago_do_not_wait() -> None:
    history = [message("assistant", gated("a")), message("assistant", call("b"))]
    assert waiting_place(history) is None
    assert said_of(history) == [NEVER_ALLOWED, UNANSWERED]
    assert waiting_place([*history, message("assistant", gated("c")), HI]) == 2


def test_a_summary_comes_first_and_system_messages_stay_where_they_are() -> None:
    history = [HI, message("system", Text("rule")), HI, message("summary", Text("before"))]
    assert roles(sendable(history)) == ["summary", "user", "system", "user"]


def test_no_two_calls_have_one_id() -> None:
    history = [
        message("assistant", call("a"), call("a"), call("a-2")),
        message("tool", answer("a", "1"), answer("a", "2")),
    ]
    assert [one.id for one in calls_of(sendable(history)[0])] == ["a", "a-2", "a-2-2"]
    assert said_of(history) == ["1", "2", UNANSWERED]


def test_empty_texts_are_left_out() -> None:
    assert sendable([message("user", Text(""), Text("hi")), message("assistant", Text(""))]) == [HI]


def test_old_returns_are_cut_before_messages_are_left_out() -> None:
    history = [HI]
    for number in range(9):
        history += [message("assistant", call(str(number))), message("tool", answer(str(number), "x" * 9_000))]
    shown = fit(sendable(history), window=20_000, fixed=0)
    assert len(shown) == len(history)
    sizes = [len(part.text) for each in shown for part in each.parts if isinstance(part, Return)]
    assert all(size <= OLD_RETURN_BYTES for size in sizes[:-FRESH])
    assert sizes[-FRESH:] == [9_000] * FRESH
    assert "call the tool again if you need them" in str(shown[2].parts)


def test_summary_and_question_stay_when_messages_are_left_out() -> None:
    summary, question = message("summary", Text("before")), message("user", Text("What is it?"))
    steps = [message("assistant", Text("y" * 900))] * 9
    shown = fit([summary, *steps, question, *steps], window=2_000, fixed=0)
    assert shown[0] is summary
    assert f"[{20 - len(shown) + 1} earlier messages" in str(shown[1].parts)
    assert shown[2] is question
    assert shown[-1] is steps[-1]


def test_arguments_that_are_cut_stay_json() -> None:
    written = replace(call("a"), arguments=orjson.dumps({"path": "a.txt", "content": "x" * 90_000}).decode())
    shown = fit(sendable([message("assistant", written)]), window=2_000, fixed=0)
    arguments = orjson.loads(calls_of(shown[0])[0].arguments)
    assert arguments["path"] == "a.txt"
    assert "left out here" in arguments["content"]


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
    assert MOST_BYTES < MAX_MESSAGE_BYTES


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
