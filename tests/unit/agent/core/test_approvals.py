"""The inputs that fit while calls wait, and repeated answers. LETTA V1 API, c.4."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.approvals import (
    Answer,
    ApprovalPending,
    InputFits,
    NothingWaits,
    RepeatedAnswer,
    UnknownCalls,
    Verdict,
    check_input,
    goes_on_anew,
)
from services.agent.core.facts import StopReason
from services.agent.core.messages import Decision, Message, Return, Text, request_id, text_of
from services.agent.core.turn import CANCELLED, begin_turn, decide
from tests.unit.agent.asking import ALL, NO, YES, answered, waiting
from tests.unit.agent.playing import NOW, Player, call, message, run_id, settings

# What may be said -------------------------------------------------------------------------------------------


def judged(player: Player, *given: Answer | str) -> Verdict:
    answers = [part for part in given if not isinstance(part, str)]
    said = [player.say(part) for part in given if isinstance(part, str)]
    return check_input(player.history, ([player.say(*answers, role="approval")] if answers else []) + said)


def test_nothing_waits() -> None:
    player = Player(settings())
    assert judged(player, "hi") == InputFits()
    assert judged(player, YES) == NothingWaits()
    assert judged(player, ALL) == NothingWaits()
    player.run(["<c>", "so"])
    assert judged(player, Decision("c", approve=True)) == NothingWaits()
    assert judged(player, "hi") == InputFits()


BOTH = (YES, Decision("b"))
WHILE_WAITING: list[tuple[str, tuple[Answer | str, ...], Any]] = [
    ("all answers", BOTH, InputFits()),
    ("all answers and more", (*BOTH, "and hurry"), InputFits()),
    ("an answer to all", (ALL,), InputFits()),
    ("one answer, and one to all", (NO, ALL), InputFits()),
    ("some of the answers", (YES,), UnknownCalls(("a", "b"), ("a",))),
    ("returns", (Return("a", "", "4"), Return("b", "", "4")), InputFits()),
    ("some of the returns", (Return("a", "", "4"),), UnknownCalls(("a", "b"), ("a",))),
    ("the answer of a rule", (replace(YES, by_rule=True),), InputFits()),
    ("a call that nobody made", (*BOTH, Decision("x")), UnknownCalls(("a", "b"), ("x",))),
    ("a call that never had to wait", (Decision("c"),), UnknownCalls(("a", "b"), ("c",))),
    ("a return that names no call", (Return(text="4"),), UnknownCalls(("a", "b"), ("",))),
]


@pytest.mark.parametrize(
    ("given", "verdict"), [row[1:] for row in WHILE_WAITING], ids=[row[0] for row in WHILE_WAITING]
)
def test_while_calls_wait(given: tuple[Answer | str, ...], verdict: Verdict) -> None:
    assert judged(waiting(call("a"), call("c"), call("b")), *given) == verdict


def test_a_message_must_wait_and_is_told_for_what() -> None:
    player = waiting(Text("may I?"), call("a"))
    pending = player.history[-1]
    # The reference stores a request for approval as a message of its own.
    assert judged(player, "hi") == ApprovalPending(UUID(int=pending.id.int - 1))
    answered(player, YES, script=("<b>",))
    assert judged(player, "hi") == ApprovalPending(UUID(int=player.history[-1].id.int - 1))


def test_the_second_of_two_answers_is_the_first_one_again() -> None:
    player = waiting(call("a"), call("b"))
    answered(player, *BOTH)
    for given in (BOTH, (NO,), (ALL,), (Return("b", "", "4"),)):
        assert judged(player, *given) == RepeatedAnswer()
    assert judged(player, Decision("x")) == judged(player, YES, Decision("x")) == NothingWaits()


def test_an_answer_comes_again_within_ten_messages() -> None:
    player = waiting()
    answered(player, YES)
    player.run(["so"])
    player.run(["so"])
    player.run(["so"])
    assert judged(player, YES) == RepeatedAnswer()
    player.run(["so"])
    player.run(["so"])
    assert judged(player, YES) == judged(player, ALL) == NothingWaits()


def test_what_a_rule_answered_needs_no_other_answer() -> None:
    player = waiting(call("a"), call("b"))
    assert answered(player, replace(YES, by_rule=True)).shown == "requires_approval"
    assert judged(player, Decision("b")) == InputFits()
    # The first answer counts.
    assert judged(player, NO, Decision("b")) == InputFits()
    assert judged(player, NO) == UnknownCalls(("b",), ("a",))


def test_an_answer_that_comes_again_while_others_wait() -> None:
    player = waiting()
    answered(player, YES, script=("<b>",))
    assert judged(player, YES) == UnknownCalls(("b",), ("a",))
    assert judged(player, YES, Decision("b")) == UnknownCalls(("b",), ("a",))


def test_a_call_that_has_the_id_of_an_earlier_one_waits_for_itself() -> None:
    player = waiting()
    answered(player, YES, script=("<a>",))
    assert judged(player, YES) == InputFits()


def request(place: int, player: Player, call_id: str = "") -> Decision:
    """An approval of the calls in a message of the history."""
    return Decision(call_id, approve=True, request_id=str(request_id(player.history[place].id)))


def test_a_decision_for_the_request_that_waits() -> None:
    player = waiting(call("a"), call("b"))
    assert judged(player, request(-1, player)) == InputFits()
    assert judged(player, request(-1, player, call_id="a"), Decision("b")) == InputFits()
    played = answered(player, request(-1, player))
    assert (played.shown, [one.name for one in played.ran]) == ("T M end_turn", ["a", "b"])


@pytest.mark.parametrize("second", ["<a>", "<b>"])
def test_a_decision_for_a_request_is_no_answer_to_the_next_one(second: str) -> None:
    player = waiting()
    first = request(-1, player)
    answered(player, first, script=(second,))
    wanted = (second[1],)
    for given in (first, replace(first, approve=False)):
        assert judged(player, given) == UnknownCalls(wanted, (first.request_id,))
    assert judged(player, replace(first, call_id="a")) == UnknownCalls(wanted, ("a",))
    assert judged(player, request(-1, player)) == InputFits()
    player.run(["so"], player.say(request(-1, player), role="approval"))
    assert judged(player, first) == RepeatedAnswer()


def test_a_decision_for_a_request_that_nobody_made() -> None:
    player = waiting()
    nowhere = Decision(approve=True, request_id=str(UUID(int=7)))
    assert judged(player, nowhere) == UnknownCalls(("a",), (nowhere.request_id,))
    assert judged(player, replace(nowhere, call_id="a")) == UnknownCalls(("a",), ("a",))
    answered(player, YES)
    assert judged(player, nowhere) == judged(player, replace(nowhere, call_id="a")) == NothingWaits()


def test_answers_are_known_again_as_long_as_their_calls_are_in_the_window() -> None:
    player = waiting()
    answered(player, YES)
    player.history = player.history[-1:]
    assert judged(player, YES) == NothingWaits()


def test_a_repeated_answer_goes_on_with_what_is_said_beside_it() -> None:
    player = waiting()
    answer, more = player.say(YES, role="approval"), player.say("and hurry")
    assert goes_on_anew([answer, more], run_id(3), NOW) == (more,)
    (alone,) = goes_on_anew([answer], run_id(3), NOW)
    assert (alone.role, alone.run_id) == ("user", run_id(3))
    assert text_of(alone).startswith("<system-alert>")
    assert "keep-alive" in text_of(alone)


# Runs that were stopped ---------------------------------------------------------------------------------------


def stopped(player: Player, *given: Answer) -> Player:
    """The history when a run took answers and was stopped before the calls had returned."""
    answer = replace(player.say(*given, role="approval"), run_id=run_id(2))
    turn = begin_turn(run_id(2), player.agent, player.history, (answer,))
    assert decide(replace(turn, interruption=CANCELLED)).stop_reason is StopReason.CANCELLED  # type: ignore[union-attr]
    player.history, player._runs = turn.history, 2
    return player


def test_calls_that_were_stopped_are_not_set_off_again() -> None:
    player = stopped(waiting(), YES)
    assert judged(player, "hi") == InputFits()
    played = player.run(["so"])
    assert (played.shown, played.ran) == ("M end_turn", [])


def test_an_answer_to_calls_that_were_stopped_lets_the_conversation_go_on() -> None:
    player = stopped(waiting(), YES)
    assert judged(player, YES) == judged(player, ALL) == RepeatedAnswer()
    player.run(["<c>", "so"])
    assert judged(player, YES) == RepeatedAnswer()


def test_calls_that_have_no_answer_yet_wait_on() -> None:
    player = stopped(waiting(call("a"), call("b")), replace(YES, by_rule=True))
    assert isinstance(judged(player, "hi"), ApprovalPending)
    assert answered(player, Decision("b")).shown == "T M end_turn"


def test_waiting_is_not_seen_through_a_message_of_a_tool() -> None:
    history: list[Message] = [
        message(1, "assistant", replace(call("a"), gate="approval")),
        message(2, "tool", Return("a", "a", "given up", is_error=True)),
    ]
    assert check_input(history, [message(3, "user", Text("hi"), run=2)]) == InputFits()
    assert check_input(history, [message(3, "approval", YES, run=2)]) == RepeatedAnswer()
