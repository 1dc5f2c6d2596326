"""Approvals and client tools: what becomes of calls that waited. LETTA V1 API, c.4."""

from dataclasses import replace
from typing import Any

import pytest

from services.agent.core.approvals import Answer
from services.agent.core.facts import ClientTool
from services.agent.core.messages import Call, Decision, Image, Return, Text, gated_calls, pieces
from services.agent.core.rules.tool_rules import (
    Children,
    ExitLoop,
    MaxCount,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
)
from services.agent.core.window.sizes import MOST_RETURN_CHARS
from tests.unit.agent.asking import ALL, GATED, MINE, NO, YES, answered, waiting
from tests.unit.agent.playing import Player, call, run_id, settings, tool

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


def test_all_that_a_client_returns_is_kept() -> None:
    picture = Image("AAAA", media_type="image/png")
    given = Return("mine", "other", "x" * 100_000, True, ("out",), ("err",), (picture,))
    (returned,) = answered(waiting(call("mine")), given).returns
    assert returned == Return("mine", "mine", "x" * 100_000, True, ("out",), ("err",), (picture,), by_client=True)


def test_what_is_too_large_for_any_window_is_cut_with_a_marker() -> None:
    (returned,) = answered(waiting(call("mine")), Return("mine", "", "x" * (MOST_RETURN_CHARS + 1))).returns
    assert MOST_RETURN_CHARS - 10 < len(returned.text) <= MOST_RETURN_CHARS
    assert "characters are left out here; a return is stored up to this length" in returned.text


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


def test_what_a_rule_answers_and_what_the_client_answers_later() -> None:
    player = waiting(call("a"), call("b"), call("c"))
    assert answered(player, replace(YES, by_rule=True)).shown == "requires_approval"
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
