"""The continuation of a turn: the reference's rules, row by row. Source: LETTA V1 API, continuation."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.agent.core.facts import ClientTool, Failure, Finish, ModelFailed, StopReason
from services.agent.core.messages import Call, Reasoning, Return, Text
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import (
    Children,
    Conditional,
    ContinueLoop,
    ExitLoop,
    MaxCount,
    RequiredBeforeExit,
    RunFirst,
    ToolRule,
)
from services.agent.core.turn import begin_turn, decide, evolve, status_of
from tests.unit.agent.playing import Reply, Script, call, play, run_id, settings

HEARTBEAT = "request_heartbeat"
LENGTH = "length"
BROKEN = Call("", "a", "a", '{"x": ')

# The newest loop: what the row is about, rules, the model's replies, what happens (see Played.shown).
NEWEST: list[tuple[str, list[ToolRule], list[Script], str]] = [
    # 1: no call and no content
    ("an empty reply ends the turn", [], [""], "M end_turn"),
    ("an empty reply with a tool still to call", [RequiredBeforeExit("a")], ["", "<a>", ""], "M R M T M end_turn"),
    ("thoughts alone are no call", [], [Reasoning("hm")], "M end_turn"),
    # 2: content, no call
    ("content ends the turn", [], ["hello"], "M end_turn"),
    ("content that was cut off", [], [Reply((Text("hel"),), LENGTH)], "M max_tokens_exceeded"),
    ("content, and a tool still to call", [RequiredBeforeExit("a")], ["hello", "<a>", "so"], "M R M T M end_turn"),
    ("cut off, and a tool still to call", [RequiredBeforeExit("a")], [Reply((Text("h"),), LENGTH), "<a>", "so"],
     "M R M T M end_turn"),
    ("a tool to call that is not attached", [RequiredBeforeExit("x")], ["hello"], "M end_turn"),
    ("two tools still to call", [RequiredBeforeExit("a"), RequiredBeforeExit("b")], ["<a>", "hi", "<b>", "so"],
     "M T M R M T M end_turn"),
    # 3: a call
    ("a call goes on", [], ["<a>", "so"], "M T M end_turn"),
    ("a call with content goes on", [], [(Text("let me see"), call("a")), "so"], "M T M end_turn"),
    ("a call goes on though its reply was cut off", [], [Reply((call("a"),), LENGTH), "so"], "M T M end_turn"),
    ("broken arguments go on", [], [BROKEN, "so"], "M T M end_turn"),
    ("an unknown tool goes on", [], [call("fly"), "so"], "M T M end_turn"),
    ("a violation goes on", [MaxCount("a", 1)], ["<a>", "<a>", "so"], "M T M T M end_turn"),
    ("a terminal call ends the turn", [ExitLoop("a")], ["<a>"], "M T tool_rule"),
    ("another call does not", [ExitLoop("a")], ["<b>", "<a>"], "M T M T tool_rule"),
    ("a terminal call that is a violation does not end it", [RunFirst("b"), ExitLoop("a")], ["<a>", "<b>", "<a>"],
     "M T M T M T tool_rule"),
    ("a terminal call that is not JSON does not end it", [ExitLoop("a")], [BROKEN, "<a>"], "M T M T tool_rule"),
    ("required over terminal", [ExitLoop("a"), RequiredBeforeExit("b")], ["<a>", "<b>", "<a>"],
     "M T R M T M T tool_rule"),
    ("terminal, and what is required was called", [ExitLoop("a"), RequiredBeforeExit("b")], ["<b>", "<a>"],
     "M T M T tool_rule"),
    ("terminal and required at once", [ExitLoop("a"), RequiredBeforeExit("a")], ["<a>"], "M T tool_rule"),
    ("continue_loop is what happens anyway", [ContinueLoop("a")], ["<a>", "so"], "M T M end_turn"),
    # 4: several calls
    ("several calls go on", [], ["<ab>", "so"], "M T M end_turn"),
    ("the same call twice", [], [(call("a"), replace(call("a"), id="2")), "so"], "M T M end_turn"),
    # 5: arguments that a rule gives
    ("a rule's arguments that do not fit", [RunFirst("a", {"x": "many"})], ["<a>"], "M T invalid_tool_call"),
    ("a rule's arguments that the tool has not", [RunFirst("a", {"y": 1})], ["<a>"], "M T invalid_tool_call"),
    ("wrong arguments over required", [RunFirst("a", {"y": 1}), RequiredBeforeExit("b")], ["<a>"],
     "M T invalid_tool_call"),
    ("a rule's arguments that fit", [RunFirst("a", {"x": 1})], ["<a>", "so"], "M T M end_turn"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "script", "shown"), [row[1:] for row in NEWEST], ids=[row[0] for row in NEWEST])
@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "sleeptime_agent"])
def test_the_newest_loop(agent_type: str, rules: list[ToolRule], script: list[Script], shown: str) -> None:
    assert play(settings(*rules, agent_type=agent_type), *script).shown == shown


def test_an_empty_reply_leaves_no_message() -> None:
    assert [message.role for message in play(settings(), "").turn.history] == ["user"]


def test_the_reminder_names_what_is_missing() -> None:
    played = play(settings(RequiredBeforeExit("a"), RequiredBeforeExit("b")), "<a>", "done?", "<b>", "done")
    (said,) = map(orjson.loads, played.reminders)
    assert said["type"] == "heartbeat"
    assert "Still to be called: b." in said["reason"]


def test_of_calls_that_may_not_be_parallel_the_first_counts() -> None:
    played = play(settings(ExitLoop("b")), "<ab>", "so")
    assert [one.name for one in played.ran] == ["a"]
    assert play(settings(model_settings={"parallel_tool_calls": False}), "<ab>", "so").ran == played.ran
    assert [one.name for one in play(settings(), "<ab>", "so").ran] == ["a", "b"]


# Calls that are not run ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "script", "words"),
    [
        ([MaxCount("a", 1)], ["<a>", "<a>"], ["may be called: b, c, d", "allowed in one request: 1"]),
        ([RunFirst("b")], ["<a>"], ["may be called: b", "begins with a call of b"]),
        ([Children("a", ("b",))], ["<a>", "<c>"], ["may be called: b", "after a, the next call must be one of: b"]),
        ([], [call("fly")], ["Tool not found: fly", "a, b, c, d"]),
        ([], [BROKEN], ["not valid JSON"]),
        ([], [Call("", "a", "a", "[1]")], ["must be a JSON object"]),
        ([], [Call("", "a", "a", '{"x": NaN}')], ["NaN is not JSON"]),
    ],
)
def test_what_is_not_run_is_answered(rules: list[ToolRule], script: list[Script], words: list[str]) -> None:
    played = play(settings(*rules), *script, "so")
    returned = played.returns[-1]
    assert (returned.is_error, returned.refused, len(played.ran)) == (True, True, len(script) - 1)
    assert all(word in returned.text for word in words)


def test_a_client_tool_out_of_order_is_told_the_rule() -> None:
    agent = settings(RunFirst("b"), client_tools=(ClientTool("mine"),))
    played = play(agent, call("mine"), "<b>", "so")
    assert played.shown == "M T M T M end_turn"
    assert "begins with a call of b" in played.returns[0].text


def test_a_client_tool_hides_a_tool_of_the_same_name() -> None:
    agent = settings(client_tools=(ClientTool("a", "mine"),))
    played = play(agent, "<a>")
    assert [(each.name, each.description) for each in played.offers[0].tools if each.name == "a"] == [("a", "mine")]
    assert (played.shown, played.ran) == ("M requires_approval", [])


def test_all_of_a_models_arguments_reach_the_tool_as_written() -> None:
    odd = Call("", "a", "a", '{"x":1.10, "y": 12345678901234567890}')
    assert play(settings(), odd, "so").ran[0].arguments == odd.arguments


# max_steps -------------------------------------------------------------------------------------------------

ROUNDS: list[tuple[str, list[ToolRule], int, list[Script], str]] = [
    ("the last step calls a tool", [], 2, ["<a>", "<a>"], "M T M T max_steps"),
    ("one step", [], 1, ["<a>"], "M T max_steps"),
    ("the last step ends the turn", [], 2, ["<a>", "so"], "M T M end_turn"),
    ("the last step is terminal", [ExitLoop("a")], 1, ["<a>"], "M T tool_rule"),
    ("the last step is cut off", [], 1, [Reply((Text("h"),), LENGTH)], "M max_tokens_exceeded"),
    ("what is required does not extend it", [RequiredBeforeExit("b")], 1, ["so"], "M max_steps"),
    ("nor over a terminal call", [ExitLoop("a"), RequiredBeforeExit("b")], 1, ["<a>"], "M T max_steps"),
    ("nor does a violation", [RunFirst("b")], 1, ["<a>"], "M T max_steps"),
]


@pytest.mark.parametrize(
    ("rules", "most", "script", "shown"), [row[1:] for row in ROUNDS], ids=[row[0] for row in ROUNDS]
)
def test_max_steps(rules: list[ToolRule], most: int, script: list[Script], shown: str) -> None:
    assert play(settings(*rules, max_steps=most), *script).shown == shown


def test_the_last_step_of_an_older_type() -> None:
    agent = settings(agent_type="memgpt_agent", max_steps=1)
    assert play(agent, call("a", **{HEARTBEAT: True})).shown == "M T max_steps"
    assert play(agent, call("a")).shown == "M T end_turn"


# Stop reasons ----------------------------------------------------------------------------------------------

STATUSES = {
    "end_turn": "completed",
    "error": "failed",
    "llm_api_error": "failed",
    "invalid_llm_response": "failed",
    "invalid_tool_call": "failed",
    "max_steps": "completed",
    "max_tokens_exceeded": "failed",
    "no_tool_call": "failed",
    "tool_rule": "completed",
    "cancelled": "cancelled",
    "insufficient_credits": "failed",
    "requires_approval": "completed",
    "context_window_overflow_in_system_prompt": "failed",
}


def test_every_stop_reason_has_its_status() -> None:
    assert len(STATUSES) == 13
    assert {reason.value: status_of(reason).value for reason in StopReason} == STATUSES


@pytest.mark.parametrize(
    "reason",
    [
        StopReason.ERROR,
        StopReason.LLM_API_ERROR,
        StopReason.INVALID_LLM_RESPONSE,
        StopReason.CONTEXT_WINDOW_OVERFLOW_IN_SYSTEM_PROMPT,
    ],
)
def test_a_failed_model_call_ends_the_run_with_its_reason(reason: StopReason) -> None:
    failure = Failure(reason, "type", "words")
    assert decide(evolve(begin_turn(run_id(1), settings(), (), ()), ModelFailed(1, 1, failure))) == Finish(
        reason, failure
    )


# Older types -----------------------------------------------------------------------------------------------

GO = {HEARTBEAT: True}
OLDER: list[tuple[str, list[ToolRule], list[Script], str]] = [
    ("no call", [], ["hello"], "M no_tool_call"),
    ("nothing at all", [], [""], "M no_tool_call"),
    ("no call, and a tool still to call", [RequiredBeforeExit("a")], ["hello"], "M no_tool_call"),
    ("no call, cut off", [], [Reply((Text("h"),), LENGTH)], "M no_tool_call"),
    ("no heartbeat", [], [call("a")], "M T end_turn"),
    ("a heartbeat", [], [call("a", **GO), call("b")], "M T h M T end_turn"),
    ("a heartbeat as text", [], [call("a", **{HEARTBEAT: "true"}), call("b")], "M T h M T end_turn"),
    ("a heartbeat as Python writes it", [], [call("a", **{HEARTBEAT: "True"}), call("b")], "M T h M T end_turn"),
    ("no heartbeat, said", [], [call("a", **{HEARTBEAT: False})], "M T end_turn"),
    ("no heartbeat, said as text", [], [call("a", **{HEARTBEAT: "false"})], "M T end_turn"),
    ("no heartbeat: null", [], [call("a", **{HEARTBEAT: None})], "M T end_turn"),
    ("a terminal call", [ExitLoop("a")], [call("a")], "M T end_turn"),
    ("a terminal call with a heartbeat", [ExitLoop("a")], [call("a", **GO)], "M T tool_rule"),
    ("a rule that goes on", [ContinueLoop("a")], [call("a"), call("b")], "M T h M T end_turn"),
    ("a child rule goes on", [Children("a", ("b",))], [call("a"), call("b")], "M T h M T end_turn"),
    ("a conditional rule goes on", [Conditional("a", {"done": "b"})], [call("a"), call("b")], "M T h M T end_turn"),
    ("terminal over going on", [ExitLoop("a"), ContinueLoop("a")], [call("a")], "M T end_turn"),
    ("a violation goes on", [RunFirst("b")], [call("a"), call("b")], "M T h M T end_turn"),
    ("an unknown tool goes on", [], [call("fly"), call("b")], "M T h M T end_turn"),
    ("broken arguments go on", [], [BROKEN, call("b")], "M T h M T end_turn"),
    ("a rule's arguments that do not fit", [RunFirst("a", {"y": 1})], [call("a")], "M T invalid_tool_call"),
    ("required over the end", [RequiredBeforeExit("b")], [call("a"), call("b")], "M T R M T end_turn"),
    ("required over terminal", [ExitLoop("a"), RequiredBeforeExit("b")], [call("a"), call("b", **GO), call("a")],
     "M T R M T h M T end_turn"),
]  # fmt: skip
OLD_TYPES = [name for name, policy in POLICIES.items() if policy.heartbeats]


def test_the_older_types() -> None:
    assert sorted(OLD_TYPES) == [
        "memgpt_agent",
        "memgpt_v2_agent",
        "react_agent",
        "split_thread_agent",
        "voice_convo_agent",
        "voice_sleeptime_agent",
        "workflow_agent",
    ]


@pytest.mark.parametrize("agent_type", OLD_TYPES)
@pytest.mark.parametrize(("rules", "script", "shown"), [row[1:] for row in OLDER], ids=[row[0] for row in OLDER])
def test_the_older_loop(agent_type: str, rules: list[ToolRule], script: list[Script], shown: str) -> None:
    assert play(settings(*rules, agent_type=agent_type), *script).shown == shown


def test_a_call_that_failed_goes_on() -> None:
    failing = {"a": Return(text="no", is_error=True)}
    played = play(settings(agent_type="memgpt_agent"), call("a"), call("b"), returns=failing)
    assert played.shown == "M T h M T end_turn"


def test_a_heartbeat_is_a_message_of_the_user_in_the_references_form() -> None:
    played = play(settings(agent_type="memgpt_agent"), call("a", **GO), call("b"))
    (said,) = map(orjson.loads, played.reminders)
    assert said["type"] == "heartbeat"
    assert said["reason"]
    assert [message.role for message in played.turn.history] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
    ]


def test_a_heartbeat_is_no_argument_of_the_tool() -> None:
    played = play(settings(agent_type="memgpt_agent"), call("a", x=1, **GO), call("b", x=2))
    assert [one.arguments for one in played.ran] == ['{"x": 1}', '{"x":2}']
    # What the model wrote stays in its message.
    assert HEARTBEAT in played.turn.history[1].parts[0].arguments  # type: ignore[union-attr]


@pytest.mark.parametrize("agent_type", POLICIES)
def test_who_has_to_call(agent_type: str) -> None:
    offered = _offers(agent_type)
    assert offered.forced is POLICIES[agent_type].must_call
    assert offered.parallel is not POLICIES[agent_type].must_call
    assert offered.choice.only is None


def test_without_tools_no_call_is_forced() -> None:
    assert not _offers("react_agent", tools=()).forced


def _offers(agent_type: str, **player: Any) -> Any:
    return play(settings(agent_type=agent_type), "hi", **player).offers[0]
