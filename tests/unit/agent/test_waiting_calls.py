"""Approvals and client tools: what may be said while calls wait, and what becomes of the calls. LETTA V1 API, c.4."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.agent.approvals import Answer, Fits, MustWait, NothingWaits, Repeats, UnknownCalls, Verdict, judge
from services.agent.facts import ClientTool, StopReason
from services.agent.messages import Call, Decision, Image, Message, Return, Text, gated_calls, pieces
from services.agent.sizes import LEAST_RETURN_CHARS
from services.agent.tool_rules import Children, ExitLoop, MaxCount, RequiredBeforeExit, RequiresApproval, RunFirst
from services.agent.turn import CANCELLED, begun, decide
from tests.unit.agent.playing import Player, call, message, run_id, settings, tool

GATED = (RequiresApproval("a"), RequiresApproval("b"))
MINE = ClientTool("mine", parameters={"type": "object", "properties": {"x": {"type": "integer"}}})
YES, NO = Decision("a", approve=True), Decision("a")
ALL = Decision(approve=True)


def waiting(*parts: Any, **player: Any) -> Player:
    """A conversation in which the calls of a reply wait: of a, for approval, unless others are given."""
    agent = player.pop("agent", None) or settings(*GATED, client_tools=(MINE,))
    player_ = Player(agent, **player)
    assert player_.run([parts or (call("a"),)]).shown == "M requires_approval"
    return player_


def answered(player: Player, *given: Answer | str, script: tuple[Any, ...] = ("so",)) -> Any:
    """A run that begins with answers, and follow-up messages."""
    answers = [part for part in given if not isinstance(part, str)]
    said = [part for part in given if isinstance(part, str)]
    return player.run(script, player.say(*answers, role="approval"), *map(player.say, said))


# What is stored -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "gates"),
    [
        ((call("a"),), ["approval"]),
        ((call("mine"),), ["client"]),
        ((call("a"), call("b"), call("mine")), ["approval", "approval", "client"]),
        ((call("c"), call("a"), call("d")), ["", "approval", ""]),
    ],
)
def test_each_call_has_its_gate(parts: tuple[Call, ...], gates: list[str]) -> None:
    pending = waiting(*parts).history[-1]
    assert [part.gate for part in pending.parts if isinstance(part, Call)] == gates


def test_a_client_tool_that_needs_approval_is_the_clients_affair() -> None:
    player = waiting(call("mine"), agent=settings(RequiresApproval("mine"), client_tools=(MINE,)))
    assert [one.gate for one in gated_calls(player.history[-1])] == ["client"]


def test_calls_beside_those_that_wait_are_shown_before_them_and_not_run() -> None:
    player = waiting(Text("let me"), call("c"), call("a"))
    kinds = [parts[0] for _, parts in pieces(player.history[-1])]
    assert [type(part).__name__ for part in kinds] == ["Text", "Call", "Call"]
    assert [message.role for message in player.history] == ["user", "assistant"]


# What becomes of the calls ----------------------------------------------------------------------------------

DENIED = "This call was denied."
ANSWERS: list[tuple[str, tuple[Call, ...], tuple[Answer, ...], list[str], list[str]]] = [
    # what it is about, calls, answers, what runs, what is returned
    ("approved", (call("a"),), (YES,), ["a"], ["done"]),
    ("denied", (call("a"),), (NO,), [], [DENIED]),
    ("denied with a reason", (call("a"),), (replace(NO, reason="too late"),), [], [f"{DENIED} Reason: too late"]),
    ("one of each", (call("a"), call("b")), (YES, Decision("b")), ["a"], ["done", DENIED]),
    ("in the order of the calls", (call("a"), call("b")), (Decision("b"), YES), ["a"], ["done", DENIED]),
    ("all at once", (call("a"), call("b")), (ALL,), ["a", "b"], ["done", "done"]),
    ("all denied", (call("a"), call("b")), (Decision(),), [], [DENIED, DENIED]),
    ("one, then all the others", (call("a"), call("b")), (NO, ALL), ["b"], [DENIED, "done"]),
    ("what never had to wait runs too", (call("c"), call("a"), call("d")), (NO,), ["c", "d"], ["done", DENIED, "done"]),
    ("the client's return", (call("mine"),), (Return("mine", "", "42"),), [], ["42"]),
    ("a return and an approval", (call("mine"), call("a")), (Return("mine", "", "42"), YES), ["a"], ["42", "done"]),
    ("a client tool that is denied", (call("mine"),), (Decision("mine"),), [], [DENIED]),
    ("a client tool that is approved and not returned", (call("mine"),), (Decision("mine", approve=True),), [],
     ["This tool runs at the client, which approved the call but returned nothing. It was not run."]),
    ("a return for a tool of the server", (call("a"),), (Return("a", "", "mine"),), [], ["mine"]),
    ("the first answer counts", (call("a"),), (NO, YES), [], [DENIED]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "given", "ran", "returned"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS]
)
def test_what_becomes_of_calls(
    calls: tuple[Call, ...], given: tuple[Answer, ...], ran: list[str], returned: list[str]
) -> None:
    played = answered(waiting(*calls), *given)
    assert played.shown == "T M end_turn"
    assert [one.name for one in played.ran] == ran
    assert [one.text for one in played.returns] == returned
    assert [one.call_id for one in played.returns] == [one.id for one in calls]


def test_a_denial_is_an_error_and_was_not_run() -> None:
    (returned,) = answered(waiting(), NO).returns
    assert (returned.is_error, returned.refused) == (True, True)


def test_all_that_a_client_returns_is_kept_and_its_text_clamped() -> None:
    picture = Image("AAAA", media_type="image/png")
    given = Return("mine", "other", "x" * 100_000, True, ("out",), ("err",), (picture,))
    (returned,) = answered(waiting(call("mine")), given).returns
    assert replace(returned, text="") == Return("mine", "mine", "", True, ("out",), ("err",), (picture,))
    # A fifth of the window, at 4 characters for a token.
    assert 25_590 < len(returned.text) <= 25_600
    assert "characters are left out" in returned.text


def test_a_client_may_always_return_so_much() -> None:
    player = waiting(call("mine"), agent=replace(settings(client_tools=(MINE,)), context_window_limit=100))
    (returned,) = answered(player, Return("mine", "", "x" * 100_000)).returns
    assert LEAST_RETURN_CHARS - 10 < len(returned.text) <= LEAST_RETURN_CHARS


def test_calls_keep_the_step_and_the_keys_of_their_reply() -> None:
    played = answered(waiting(call("c"), call("a")), YES)
    assert [one.key for one in played.ran] == [f"{run_id(1)}/1/0", f"{run_id(1)}/1/1"]
    assert [fact.step for fact in played.facts if hasattr(fact, "step")] == [0, 1]


def test_what_is_said_with_the_answer_comes_after_it() -> None:
    player = waiting()
    played = answered(player, YES, "and hurry")
    assert [one.role for one in played.turn.history[2:]] == ["approval", "user", "tool", "assistant"]
    assert played.shown == "T M end_turn"


def test_a_run_with_answers_has_all_its_steps() -> None:
    player = waiting()
    player.agent = settings(*GATED, max_steps=1)
    assert answered(player, YES, script=("<c>",)).shown == "T M T max_steps"


def test_a_run_that_waits_again() -> None:
    player = waiting()
    assert answered(player, YES, script=("<b>",)).shown == "T M requires_approval"
    assert answered(player, Decision("b")).shown == "T M end_turn"


def test_some_answers_now_and_some_later() -> None:
    player = waiting(call("a"), call("b"), call("c"))
    assert answered(player, YES).shown == "requires_approval"
    # The first answer counts.
    played = answered(player, NO, Decision("b"))
    assert (played.shown, [one.name for one in played.ran]) == ("T M end_turn", ["a", "c"])


def test_a_tool_that_is_gone_by_then() -> None:
    player = waiting()
    player.agent = settings()
    player._tools = (tool("b"),)
    (returned,) = answered(player, YES).returns
    assert returned.text == "Tool not found: a. The tools you can call: b."


def test_a_tool_that_the_client_has_by_then_is_still_the_servers_call() -> None:
    player = waiting(call("c"), call("a"))
    player.agent = settings(*GATED, client_tools=(ClientTool("a"), ClientTool("c")))
    played = answered(player, YES)
    # Nobody approved c, and the client says that it is its own now.
    assert [one.name for one in played.ran] == ["a"]
    assert "Tool not found: c" in played.returns[0].text


# With other rules --------------------------------------------------------------------------------------------


def test_arguments_of_a_rule_are_approved_with_the_call() -> None:
    player = waiting(call("a", x=1), agent=settings(*GATED, RunFirst("a", {"x": 7})))
    (asked,) = gated_calls(player.history[-1])
    assert asked.arguments == '{"x": 7}'
    assert [one.arguments for one in answered(player, YES).ran] == ['{"x": 7}']


def test_what_was_approved_is_what_runs() -> None:
    """A rule about the first call of a request has no say in calls that an earlier request made."""
    player = Player(settings(RequiresApproval("a"), RunFirst("a", {"x": 7}), RunFirst("c")))
    assert player.run(["<c>", call("a", x=1)]).shown == "M T M requires_approval"
    assert [one.arguments for one in answered(player, YES).ran] == ['{"x":1}']


def test_arguments_of_a_child_rule_are_approved_too() -> None:
    player = Player(settings(RequiresApproval("a"), Children("c", ("a",), {"a": {"x": 7}})))
    player.run(["<c>", call("a", x=1)])
    assert [one.arguments for one in answered(player, YES).ran] == ['{"x": 7}']


def test_nobody_is_asked_for_a_call_that_cannot_run() -> None:
    player = Player(settings(RequiresApproval("a"), RunFirst("a", {"y": 1})))
    assert player.run(["<a>"]).shown == "M T invalid_tool_call"


@pytest.mark.parametrize("given", [YES, NO])
def test_a_call_counts_once_whether_it_was_approved_or_not(given: Decision) -> None:
    player = Player(settings(RequiresApproval("a"), MaxCount("a", 2)))
    player.run(["<a>"])
    played = answered(player, given, script=("<a>",))
    assert (played.shown, played.offers[0].choice.allowed) == ("T M requires_approval", tuple("abcd"))
    played = answered(player, given, script=("<a>", "so"))
    assert (played.shown, played.offers[0].choice.allowed) == ("T M T M end_turn", tuple("bcd"))


def test_calls_before_the_question_count_on_and_those_of_an_earlier_question_do_not() -> None:
    player = Player(settings(RequiresApproval("a"), MaxCount("c", 1)))
    player.run(["<c>", "so"])
    assert player.run(["<c>", "<a>"]).shown == "M T M requires_approval"
    assert answered(player, YES).offers[0].choice.allowed == tuple("abd")
    assert player.run(["so"]).offers[0].choice.allowed == tuple("abcd")


def test_a_denied_first_call_is_not_demanded_again() -> None:
    player = Player(settings(RequiresApproval("a"), RunFirst("a")))
    player.run(["<a>"])
    offered = answered(player, NO).offers[0]
    assert (offered.choice.allowed, offered.forced) == (tuple("abcd"), False)


def test_a_denied_call_is_not_required_before_the_end() -> None:
    player = Player(settings(RequiresApproval("a"), RequiredBeforeExit("a")))
    player.run(["<a>"])
    assert answered(player, NO).shown == "T M end_turn"


def test_an_approved_call_can_be_the_last() -> None:
    player = Player(settings(RequiresApproval("a"), ExitLoop("a")))
    player.run(["<a>"])
    assert answered(player, YES).shown == "T tool_rule"


def test_a_denied_call_is_not_the_last() -> None:
    player = Player(settings(RequiresApproval("a"), ExitLoop("a")))
    player.run(["<a>"])
    assert answered(player, NO).shown == "T M end_turn"


def test_an_approved_last_call_waits_for_what_is_required() -> None:
    rules = (RequiresApproval("a"), ExitLoop("a"), RequiredBeforeExit("c"))
    player = Player(settings(*rules))
    player.run(["<a>"])
    assert answered(player, YES, script=("<c>", "so")).shown == "T R M T M end_turn"
    player = Player(settings(*rules))
    player.run(["<c>", "<a>"])
    assert answered(player, YES).shown == "T tool_rule"


@pytest.mark.parametrize(
    ("arguments", "shown"), [({}, "T end_turn"), ({"request_heartbeat": True}, "T h M no_tool_call")]
)
def test_an_older_type_goes_on_as_its_call_asked(arguments: dict[str, Any], shown: str) -> None:
    player = Player(settings(*GATED, agent_type="memgpt_agent"))
    player.run([call("a", **arguments)])
    assert answered(player, YES).shown == shown


def test_an_older_type_hears_of_a_denial() -> None:
    player = Player(settings(*GATED, agent_type="memgpt_agent"))
    player.run(["<a>"])
    assert answered(player, NO, script=("<c>",)).shown == "T h M T end_turn"


# What may be said -------------------------------------------------------------------------------------------


def judged(player: Player, *given: Answer | str) -> Verdict:
    answers = [part for part in given if not isinstance(part, str)]
    said = [player.say(part) for part in given if isinstance(part, str)]
    return judge(player.history, ([player.say(*answers, role="approval")] if answers else []) + said)


def test_nothing_waits() -> None:
    player = Player(settings())
    assert judged(player, "hi") == Fits()
    assert judged(player, YES) == NothingWaits()
    assert judged(player, ALL) == NothingWaits()
    player.run(["<c>", "so"])
    assert judged(player, Decision("c", approve=True)) == NothingWaits()
    assert judged(player, "hi") == Fits()


WHILE_WAITING: list[tuple[str, tuple[Answer | str, ...], Any]] = [
    ("an answer", (YES,), Fits()),
    ("an answer and more", (YES, "and hurry"), Fits()),
    ("an answer to all", (ALL,), Fits()),
    ("some of the answers", (Decision("b"),), Fits()),
    ("a return", (Return("a", "", "4"),), Fits()),
    ("a call that nobody made", (YES, Decision("x")), UnknownCalls(("a", "b"), ("x",))),
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
    assert judged(player, "hi") == MustWait(UUID(int=pending.id.int - 1))
    answered(player, YES, script=("<b>",))
    assert judged(player, "hi") == MustWait(UUID(int=player.history[-1].id.int - 1))


def test_the_second_of_two_answers_is_the_first_one_again() -> None:
    player = waiting(call("a"), call("b"))
    answered(player, YES, Decision("b"))
    for given in ((YES, Decision("b")), (NO,), (ALL,), (Return("b", "", "4"),)):
        assert judged(player, *given) == Repeats(run_id(2))
    assert judged(player, Decision("x")) == NothingWaits()


def test_answers_in_two_parts_repeat_their_own_runs() -> None:
    player = waiting(call("a"), call("b"))
    answered(player, YES)
    answered(player, Decision("b"))
    assert judged(player, YES) == Repeats(run_id(2))
    assert judged(player, Decision("b")) == Repeats(run_id(3))
    assert judged(player, YES, Decision("b")) == Repeats(run_id(3))


def test_an_answer_that_comes_again_while_others_wait() -> None:
    player = waiting()
    answered(player, YES, script=("<b>",))
    assert judged(player, YES) == Repeats(run_id(2))
    assert judged(player, YES, Decision("b")) == UnknownCalls(("b",), ("a",))


def test_a_call_that_has_the_id_of_an_earlier_one_waits_for_itself() -> None:
    player = waiting()
    answered(player, YES, script=("<a>",))
    assert judged(player, YES) == Fits()


def test_an_answer_to_all_repeats_the_latest_run_only() -> None:
    player = waiting()
    answered(player, ALL)
    assert judged(player, ALL) == Repeats(run_id(2))
    player.run(["so"])
    assert judged(player, ALL) == NothingWaits()
    assert judged(player, YES) == Repeats(run_id(2))


def test_answers_are_known_again_as_long_as_they_are_in_the_window() -> None:
    player = waiting()
    answered(player, YES)
    player.history = player.history[-1:]
    assert judged(player, YES) == NothingWaits()


# Runs that were stopped ---------------------------------------------------------------------------------------


def stopped(player: Player, *given: Answer) -> Player:
    """The history when a run took answers and was stopped before the calls had returned."""
    answer = replace(player.say(*given, role="approval"), run_id=run_id(2))
    turn = begun(run_id(2), player.agent, player.history, (answer,))
    assert decide(replace(turn, interruption=CANCELLED)).stop_reason is StopReason.CANCELLED  # type: ignore[union-attr]
    player.history, player._runs = turn.history, 2
    return player


def test_calls_that_were_stopped_are_not_set_off_again() -> None:
    player = stopped(waiting(), YES)
    assert judged(player, "hi") == Fits()
    played = player.run(["so"])
    assert (played.shown, played.ran) == ("M end_turn", [])


def test_an_answer_to_calls_that_were_stopped_comes_too_late() -> None:
    player = stopped(waiting(), YES)
    assert judged(player, YES) == NothingWaits()
    player.run(["<c>", "so"])
    assert judged(player, YES) == judged(player, ALL) == NothingWaits()


def test_calls_that_have_no_answer_yet_wait_on() -> None:
    player = stopped(waiting(call("a"), call("b")), YES)
    assert isinstance(judged(player, "hi"), MustWait)
    assert answered(player, Decision("b")).shown == "T M end_turn"


def test_waiting_is_not_seen_through_a_message_of_a_tool() -> None:
    history: list[Message] = [
        message(1, "assistant", replace(call("a"), gate="approval")),
        message(2, "tool", Return("a", "a", "given up", is_error=True)),
    ]
    assert judge(history, [message(3, "user", Text("hi"), run=2)]) == Fits()
    assert judge(history, [message(3, "approval", YES, run=2)]) == Repeats(run_id(1))
