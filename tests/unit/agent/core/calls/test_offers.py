"""The calls that a model call of a turn may make, and its tools: tool rules over several steps, older types' tools."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.calls.offers import THINKING, Offer, offered_tools
from services.agent.core.calls.replies import reply_parts, restore_thoughts
from services.agent.core.facts import ClientTool
from services.agent.core.messages import Call, Reasoning, Return
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import (
    Children,
    Conditional,
    ContinueLoop,
    ExitLoop,
    MaxCount,
    ParentLast,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
    ToolRule,
)
from tests.unit.agent.playing import TOOLS, Player, Reply, Script, call, message, play, settings, tool

HEARTBEAT = "request_heartbeat"


def short(offered: Offer) -> str:
    """The allowed tools; "!": one must be called, "+": several may be called at once."""
    return "".join(offered.choice.allowed) + "!" * offered.forced + "+" * offered.parallel


# What it is about, rules, the model's replies, what is offered to each of them.
STEPS: list[tuple[str, list[ToolRule], list[Script], str]] = [
    ("no rules", [], ["<a>", "so"], "abcd+ abcd+"),
    ("only the first call", [RunFirst("b")], ["<b>", "so"], "b! abcd"),
    ("a first call that is a violation", [RunFirst("b")], ["<a>", "<b>", "so"], "b! b! abcd"),
    ("text is no first call", [RunFirst("b"), RequiredBeforeExit("b")], ["so", "<b>", "so"], "b! b! abcd"),
    ("one of two first calls", [RunFirst("b"), RunFirst("a")], ["<a>", "so"], "ab! abcd"),
    ("a child of the last call", [Children("a", ("b", "c"))], ["<a>", "<b>", "so"], "abcd bc! abcd"),
    ("a child after a violation", [Children("a", ("b",))], ["<a>", "<c>", "<b>", "so"], "abcd b! b! abcd"),
    ("a child of a call in the middle", [Children("a", ("b",))], ["<a>", "<b>", "<c>", "so"], "abcd b! abcd abcd"),
    ("children of two rules", [Children("a", ("b", "c")), Children("a", ("c", "d"))], ["<a>", "so"], "abcd c!"),
    ("children that nobody has", [Children("a", ("x",))], ["<a>", "so"], "abcd abcd"),
    ("a child directly after its parent only", [ParentLast("a", ("b",))], ["<c>", "<a>", "<b>", "so"],
     "acd acd b! acd"),
    ("what the return says", [Conditional("a", {"done": "b"}, "c")], ["<a>", "so"], "abcd b!"),
    ("what the return does not say", [Conditional("a", {"other": "b"}, "c")], ["<a>", "so"], "abcd c!"),
    ("no case and no default", [Conditional("a", {"other": "b"})], ["<a>", "so"], "abcd abcd"),
    ("no case, and there must be one", [Conditional("a", {"other": "b"}, "c", True)], ["<a>", "so"], "abcd abcd"),
    ("a most of calls", [MaxCount("a", 2)], ["<a>", "<b>", "<a>", "so"], "abcd abcd abcd bcd"),
    ("a violation does not count", [RunFirst("b"), MaxCount("a", 1)], ["<a>", "<b>", "<a>", "so"],
     "b! b! abcd bcd"),
    ("a call that is not JSON does not count", [MaxCount("a", 1)], [Call("", "a", "a", "{"), "<a>", "so"],
     "abcd abcd bcd"),
    ("all rules together", [Children("a", ("b", "c")), MaxCount("b", 1)], ["<b>", "<a>", "so"],
     "abcd acd c!"),
    ("no call is forced by the rest", [ContinueLoop("a"), ExitLoop("b"), RequiredBeforeExit("c")], ["<c>", "so"],
     "abcd abcd"),
    ("approvals alone leave calls parallel", [RequiresApproval("d")], ["<a>", "so"], "abcd+ abcd+"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "script", "offered"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_what_is_offered_to_each_reply(rules: list[ToolRule], script: list[Script], offered: str) -> None:
    assert " ".join(map(short, play(settings(*rules), *script).offers)) == offered


# Rules, what the request has to begin with, the model's replies, what is offered to each of them.
FIRST_CALLS: list[tuple[list[ToolRule], str | None, list[Script], str]] = [
    ([], "b", ["<b>", "<a>", "so"], "b!+ abcd+ abcd+"),
    ([], "", ["<a>", "so"], "abcd!+ abcd+"),
    ([], "nobody has it", ["so"], "abcd+"),
    ([], None, ["so"], "abcd+"),
    ([RunFirst("a")], "b", ["<a>", "so"], "a! abcd"),
    ([MaxCount("b", 1)], "b", ["<b>", "so"], "b! acd"),
]


@pytest.mark.parametrize(("rules", "first", "script", "offered"), FIRST_CALLS)
def test_a_request_begins_with_a_call(
    rules: list[ToolRule], first: str | None, script: list[Script], offered: str
) -> None:
    agent = settings(*rules, first_call=first)
    assert " ".join(map(short, play(agent, *script).offers)) == offered


@pytest.mark.parametrize(
    ("agents", "requests", "parallel"),
    [(None, None, False), (False, None, False), (False, True, True), (True, False, False), (None, False, False)],
)
def test_the_request_says_whether_calls_are_parallel(
    agents: bool | None, requests: bool | None, parallel: bool
) -> None:
    of_model = {} if agents is None else {"parallel_tool_calls": agents}
    agent = settings(model_settings=of_model, parallel_tool_calls=requests)
    assert play(agent, "so").offers[0].parallel is parallel


def test_a_failed_call_is_a_call() -> None:
    failing = {"a": Return(text="no", is_error=True)}
    played = play(settings(MaxCount("a", 1), Children("a", ("b",))), "<a>", "<b>", "so", returns=failing)
    assert " ".join(map(short, played.offers)) == "abcd b! bcd"


def test_the_only_tool_is_named() -> None:
    played = play(settings(RunFirst("b"), Children("b", ("c", "d"))), "<b>", "<c>", "so")
    assert [offered.choice.only for offered in played.offers] == ["b", None, None]


def test_one_request_says_nothing_of_the_next() -> None:
    player = Player(settings(MaxCount("a", 1), RunFirst("b")))
    assert [short(player.run(["<b>", "<a>", "so"]).offers[place]) for place in (0, 2)] == ["b!", "bcd"]
    assert short(player.run(["<b>", "so"]).offers[0]) == "b!"


def test_a_compaction_makes_no_call_undone() -> None:
    player = Player(settings(RunFirst("a"), MaxCount("a", 1), RequiredBeforeExit("a")))
    played = player.run(["<a>", Reply((call("b"),), tokens=31_000), "so"])
    assert played.shown == "M T M T C M end_turn"
    assert [one.role for one in played.turn.history] == ["summary", "assistant", "tool", "assistant"]
    assert short(played.offers[2]) == "bcd"


# Arguments that rules give ---------------------------------------------------------------------------------

FILLED: list[tuple[list[ToolRule], list[Script], list[str]]] = [
    ([RunFirst("a", {"x": 7})], [call("a", x=1), call("a", x=2), "so"], ['{"x": 7}', '{"x":2}']),
    ([RunFirst("a", {"x": 7})], [call("a"), "so"], ['{"x": 7}']),
    ([RunFirst("a", {})], [call("a", x=1), "so"], ['{"x":1}']),
    ([Children("a", ("b", "c"), {"b": {"x": 7}})], ["<a>", call("b", x=1), "so"], ["{}", '{"x": 7}']),
    ([Children("a", ("b", "c"), {"b": {"x": 7}})], ["<a>", call("c", x=1), "so"], ["{}", '{"x":1}']),
    ([Children("a", ("b",), {"b": {"x": 7}})], ["<b>", "so"], ["{}"]),
    ([RunFirst("a", {"x": 7}), RunFirst("a", {"x": 8})], [call("a"), "so"], ['{"x": 8}']),
]


@pytest.mark.parametrize(("rules", "script", "ran"), FILLED)
def test_arguments_of_rules_win_over_the_models(rules: list[ToolRule], script: list[Script], ran: list[str]) -> None:
    assert [one.arguments for one in play(settings(*rules), *script).ran] == ran


def test_a_rules_true_is_no_one() -> None:
    tools = (tool("a", x="boolean"),)
    played = play(settings(RunFirst("a", {"x": True})), call("a", x=1), "so", tools=tools)
    assert [one.arguments for one in played.ran] == ['{"x": true}']


def test_the_message_has_the_arguments_that_run() -> None:
    played = play(settings(RunFirst("a", {"x": 7})), call("a", x=1), "so")
    assert played.turn.history[1].parts[0].arguments == '{"x": 7}'  # type: ignore[union-attr]


# Tools of older types --------------------------------------------------------------------------------------


def dressed(agent_type: str, *rules: ToolRule, tools: Any = TOOLS, **options: Any) -> dict[str, Any]:
    agent = settings(*rules, agent_type=agent_type, **options)
    offered = play(agent, "hi", tools=tools).offers[0]
    return {one.name: one.parameters for one in offered_tools(offered, agent)}


@pytest.mark.parametrize("agent_type", POLICIES)
def test_a_model_that_reasons_is_asked_for_no_thoughts_in_arguments(agent_type: str) -> None:
    agent = settings(agent_type=agent_type)
    offered = play(agent, "hi").offers[0]
    told = {one.name: one.parameters for one in offered_tools(offered, agent, reasons=True)}
    assert all(THINKING not in parameters["properties"] for parameters in told.values())
    assert all(THINKING not in parameters.get("required", ()) for parameters in told.values())
    # All else stays as its type wants it.
    assert list(told["a"]["properties"]) == ["x"] + [HEARTBEAT] * POLICIES[agent_type].heartbeats


@pytest.mark.parametrize("agent_type", POLICIES)
def test_what_is_added_to_the_arguments(agent_type: str) -> None:
    policy = POLICIES[agent_type]
    schema = dressed(agent_type)["a"]
    expected = [THINKING] * policy.inner_thoughts + ["x"] + [HEARTBEAT] * policy.heartbeats
    # Thoughts first: they are written before what they are about.
    assert list(schema["properties"]) == expected
    assert schema.get("required", []) == [name for name in expected if name != "x"]
    assert TOOLS[0].parameters["properties"].keys() == {"x"}


@pytest.mark.parametrize("agent_type", POLICIES)
@pytest.mark.parametrize("wrong", [None, "x", ["x"], 3])
def test_a_schema_of_another_shape_is_no_obstacle(agent_type: str, wrong: Any) -> None:
    odd = replace(tool("a"), parameters={"type": "object", "properties": wrong, "required": None})
    policy, schema = POLICIES[agent_type], dressed(agent_type, tools=(odd,))["a"]
    added = [THINKING] * policy.inner_thoughts + [HEARTBEAT] * policy.heartbeats
    assert schema["properties"] == wrong if not added else list(schema["properties"]) == schema["required"] == added
    assert play(settings(RunFirst("a", {"x": 1}), agent_type=agent_type), call("a"), *["so"] * 3, tools=(odd,)).ran


def test_who_thinks_in_arguments() -> None:
    thinking = {name for name, policy in POLICIES.items() if policy.inner_thoughts}
    assert thinking == {"memgpt_agent", "memgpt_v2_agent", "split_thread_agent", "react_agent", "workflow_agent"}


def test_a_terminal_tool_asks_for_no_heartbeat() -> None:
    schemas = dressed("memgpt_agent", ExitLoop("a"))
    assert HEARTBEAT not in schemas["a"]["properties"]
    assert HEARTBEAT in schemas["b"]["properties"]


def test_a_tool_keeps_an_argument_of_its_own_that_has_such_a_name() -> None:
    own = tool("a", thinking="string", request_heartbeat="boolean")
    schema = dressed("memgpt_agent", tools=(own,))["a"]
    assert schema["properties"] == own.parameters["properties"]
    agent = settings(agent_type="memgpt_agent")
    played = play(agent, call("a", **{THINKING: "mine"}), tools=(own,))
    assert [one.arguments for one in played.ran] == ['{"thinking":"mine"}']


def test_a_schema_without_arguments_gets_some() -> None:
    assert list(dressed("react_agent", tools=(replace(tool("a"), parameters={}),))["a"]["properties"]) == [
        THINKING,
        HEARTBEAT,
    ]


def test_client_tools_come_last_and_are_dressed_too() -> None:
    mine = ClientTool("mine", "What I do.", {"type": "object", "properties": {"y": {"type": "string"}}})
    schemas = dressed("memgpt_agent", client_tools=(mine, ClientTool("bare")))
    assert list(schemas) == ["a", "b", "c", "d", "mine", "bare"]
    assert list(schemas["mine"]["properties"]) == [THINKING, "y", HEARTBEAT]
    assert dressed("letta_v1_agent", client_tools=(ClientTool("bare"),))["bare"] == {"type": "object", "properties": {}}


# Thoughts in arguments ----------------------------------------------------------------------------------------


def thought(*parts: Any, agent_type: str = "memgpt_agent") -> tuple[Any, ...]:
    agent = settings(agent_type=agent_type)
    offered = play(agent, "hi").offers[0]
    return reply_parts(parts, settings=agent, offered=offered, run_id=UUID(int=1), step=1)


def written_call(arguments: str) -> Call:
    return Call("", "a", "a", arguments)


@pytest.mark.parametrize(
    ("arguments", "thoughts", "left"),
    [
        ('{"thinking": "hm", "x": 1}', "hm", '{"x": 1}'),
        ('{"x": 1, "thinking": "你好"}', "你好", '{"x": 1}'),
        ('{"thinking": "hm", "x": "你好"}', "hm", '{"x": "你好"}'),
        # What Postgres cannot store: NUL, halves of pairs.
        ('{"thinking": "a\\u0000b\\ud83d"}', "ab\ufffd", "{}"),
        ('{"thinking": "hm", "x": "\\ud83d"}', "hm", '{"x": "\\ud83d"}'),
        ('{"x": 1}', None, '{"x": 1}'),
        ('{"thinking": 1}', None, '{"thinking": 1}'),
        ('{"thinking": "hm"', None, '{"thinking": "hm"'),
        ('["thinking"]', None, '["thinking"]'),
        ("", None, ""),
        ('{"thinking": "", "x": 1}', None, '{"x": 1}'),
    ],
)
def test_thoughts_are_taken_out_of_arguments(arguments: str, thoughts: str | None, left: str) -> None:
    *before, made = thought(written_call(arguments))
    assert before == ([] if thoughts is None else [Reasoning(thoughts, prompted=True)])
    assert made.arguments == left


@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "sleeptime_agent", "voice_convo_agent"])
def test_other_types_leave_arguments_alone(agent_type: str) -> None:
    made = written_call('{"thinking": "hm"}')
    assert [one.arguments for one in thought(made, agent_type=agent_type)] == [made.arguments]


def test_thoughts_are_given_back_where_they_were_written() -> None:
    parts = thought(Reasoning("of its own", "signed"), written_call('{"thinking": "hm", "x": 1}'))
    stored = message(1, "assistant", *parts)
    asked = message(2, "user", Reasoning("odd", prompted=True))
    assert [one.parts for one in restore_thoughts([asked, stored])] == [
        (Reasoning("odd", prompted=True),),
        (Reasoning("of its own", "signed"), replace(parts[-1], arguments='{"thinking": "hm", "x": 1}')),
    ]


def test_a_reply_has_keys_that_every_owner_gives_alike() -> None:
    one, two = thought(call("a"), call("b"), agent_type="letta_v1_agent")
    assert (one.key, two.key) == (f"{UUID(int=1)}/1/0", f"{UUID(int=1)}/1/1")


def test_the_client_is_not_told_what_the_server_cannot_store() -> None:
    assert thought(Reasoning("a\0b")) == (Reasoning("ab"),)
