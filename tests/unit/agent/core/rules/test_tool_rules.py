"""The nine tool rules: what may be called next, which rule wins, and what the model is told."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.agent.core.rules.rule_words import describe, reminder, violation
from services.agent.core.rules.tool_rules import (
    Children,
    Choice,
    Conditional,
    ContinueLoop,
    ExecutedCall,
    ExitLoop,
    MaxCount,
    ParentLast,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
    ToolRule,
    allows_parallel,
    choose,
    continues,
    is_terminal,
    missing_calls,
    needs_approval,
)

ATTACHED = ("a", "b", "c", "d")
ALL = "abcd"
WEATHER = Conditional("a", {"sun": "b", "rain": "c"})
WITH_DEFAULT = Conditional("a", {"sun": "b"}, default_child="d")
STRICT = Conditional("a", {"sun": "b"}, require_output_mapping=True)
STRICT_WITH_DEFAULT = Conditional("a", {"sun": "b"}, default_child="d", require_output_mapping=True)


def calls(names: str, returned: str = "") -> tuple[ExecutedCall, ...]:
    """One call for each letter; the last one returned `returned`."""
    return tuple(ExecutedCall(name, returned if place == len(names) else "") for place, name in enumerate(names, 1))


# What the rules are, what was called, what the last call returned -> the allowed tools ("!": one must be called).
CASES: list[tuple[str, list[ToolRule], str, str, str]] = [
    ("no rules", [], "", "", ALL),
    ("no rules, later", [], "ab", "", ALL),
    # run_first
    ("the first call", [RunFirst("b")], "", "", "b!"),
    ("one of the first calls, in the order of the tools", [RunFirst("c"), RunFirst("a")], "", "", "ac!"),
    ("only the first call", [RunFirst("b")], "a", "", ALL),
    ("a first tool that is not attached does not count", [RunFirst("x"), RunFirst("b")], "", "", "b!"),
    ("no first tool is attached", [RunFirst("x")], "", "", ALL),
    ("no first tool is attached: the others decide", [RunFirst("x"), ParentLast("a", ("b",))], "", "", "acd"),
    # constrain_child_tools
    ("a child follows", [Children("a", ("c", "b"))], "a", "", "bc!"),
    ("a child is free before", [Children("a", ("b",))], "", "", ALL),
    ("a child is free after another", [Children("a", ("b",))], "ac", "", ALL),
    ("the children of two rules", [Children("a", ("b", "c")), Children("a", ("c", "d"))], "a", "", "c!"),
    ("a child that is not attached", [Children("a", ("b", "x"))], "a", "", "b!"),
    ("no child is attached: all, nothing forced", [Children("a", ("x",))], "a", "", ALL),
    ("no children: all, nothing forced", [Children("a", ())], "a", "", ALL),
    # parent_last_tool
    ("not before the parent", [ParentLast("a", ("b", "c"))], "", "", "ad"),
    ("right after the parent, and then only they", [ParentLast("a", ("b", "c"))], "a", "", "bc!"),
    ("not later", [ParentLast("a", ("b", "c"))], "ad", "", "ad"),
    ("not twice", [ParentLast("a", ("b", "c"))], "ab", "", "ad"),
    ("two parents of one child exclude it, so all are left", [ParentLast("a", ("b",)), ParentLast("c", ("b",))], "a",
     "", ALL),
    # conditional
    ("the return decides", [WEATHER], "a", "sun", "b!"),
    ("the return decides otherwise", [WEATHER], "a", "rain", "c!"),
    ("another tool's return does not", [WEATHER], "ab", "sun", ALL),
    ("an earlier return does not", [WEATHER], "aa", "fog", ALL),
    ("nothing called", [WEATHER], "", "", ALL),
    ("no match, no default: silent", [WEATHER], "a", "fog", ALL),
    ("no match: the default", [WITH_DEFAULT], "a", "fog", "d!"),
    ("a match before the default", [WITH_DEFAULT], "a", "sun", "b!"),
    ("a match under the strict", [STRICT], "a", "sun", "b!"),
    ("strict, no match: nothing, so all", [STRICT], "a", "fog", ALL),
    ("strict goes before the default", [STRICT_WITH_DEFAULT], "a", "fog", ALL),
    ("the chosen one is not attached", [Conditional("a", {"sun": "x"})], "a", "sun", ALL),
    # max_count_per_step
    ("below the count", [MaxCount("a", 2)], "a", "", ALL),
    ("each call counts once", [MaxCount("a", 2)], "aba", "", "bcd"),
    ("above the count", [MaxCount("a", 1)], "aa", "", "bcd"),
    ("other calls do not count", [MaxCount("a", 1)], "bcd", "", ALL),
    ("two counts", [MaxCount("a", 1), MaxCount("b", 2)], "abb", "", "cd"),
    ("every count is reached: all", [MaxCount(name, 1) for name in ATTACHED], ALL, "", ALL),
    # The other four never narrow the choice.
    ("continue_loop", [ContinueLoop("a")], "a", "", ALL),
    ("exit_loop", [ExitLoop("a")], "a", "", ALL),
    ("required_before_exit", [RequiredBeforeExit("a")], "b", "", ALL),
    ("requires_approval", [RequiresApproval("a")], "b", "", ALL),
    # One against another
    ("run_first before a parent rule", [ParentLast("a", ("b",)), RunFirst("b")], "", "", "b!"),
    ("run_first before a count of what was called", [RunFirst("b"), MaxCount("b", 1)], "b", "", "acd"),
    ("a child within its count", [Children("a", ("b", "c")), MaxCount("b", 1)], "ba", "", "c!"),
    ("a child beyond its count: all, nothing forced", [Children("a", ("b",)), MaxCount("b", 1)], "ba", "", ALL),
    ("a child and a parent rule that agree", [Children("a", ("b", "c")), ParentLast("a", ("c", "d"))], "a", "", "c!"),
    ("a child that another parent holds", [Children("a", ("b", "c")), ParentLast("d", ("b",))], "a", "", "c!"),
    ("a child and a return that agree", [Children("a", ("b", "d")), WEATHER], "a", "sun", "b!"),
    ("a child and a return at odds: all", [Children("a", ("d",)), WEATHER], "a", "sun", ALL),
    ("a silent return leaves the child forced", [Children("a", ("d",)), WEATHER], "a", "fog", "d!"),
    ("a count alone forces nothing", [MaxCount("b", 1), ParentLast("d", ("c",))], "b", "", "ad"),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "called", "returned", "expected"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])  # fmt: skip
def test_what_may_be_called(rules: list[ToolRule], called: str, returned: str, expected: str) -> None:
    choice = choose(rules, ATTACHED, calls(called, returned))
    assert "".join(choice.allowed) + "!" * choice.forced == expected


@pytest.mark.parametrize(
    ("key", "returned", "matches"),
    [
        ("sun", "sun", True),
        ("sun", "Sun", False),
        ("sun", "sun ", False),
        ("sun", '{"status": "OK", "message": "sun", "time": "2026-01-01"}', True),
        ("sun", '{"weather": "sun"}', False),
        ('{"weather": "sun"}', '{"weather": "sun"}', True),
        ("{sun", "{sun", True),
        ('["sun"]', '["sun"]', True),
        ("true", "True", True),
        ("True", "true", True),
        ("TRUE", '{"message": true}', True),
        ("false", "False", True),
        ("true", "False", False),
        ("true", "1", False),
        ("1", "1", True),
        ("1", " 1\n", True),
        ("1", "1.0", True),
        ("1.0", "1", True),
        ("1.50", "1.5", True),
        ("1.5", '{"message": 1.5}', True),
        ("-2", '{"message": -2}', True),
        ("1", "2", False),
        ("1", "one", False),
        ("9007199254740993", "9007199254740992", False),
        ("nan", "NaN", False),
        ("nan", "nan", True),
        ("1e3", "1000", True),
        ("1e999999999", "9" * 5000, False),
        ("inf", "Infinity", False),
        ("snan", "nan1", False),
        ("null", '{"message": null}', True),
        ("", "", True),
        ("", '{"message": ""}', True),
    ],
)
def test_how_a_return_matches_a_key(key: str, returned: str, matches: bool) -> None:
    choice = choose([Conditional("a", {key: "b"}, default_child="c")], ATTACHED, calls("a", returned))
    assert choice.only == ("b" if matches else "c")


def test_an_equal_key_goes_before_an_equal_number() -> None:
    rule = Conditional("a", {"1": "b", "1.0": "c", "True": "b", "true": "d"})
    assert choose([rule], ATTACHED, calls("a", "1.0")).only == "c"
    assert choose([rule], ATTACHED, calls("a", "true")).only == "d"
    assert choose([rule], ATTACHED, calls("a", "1.00")).only == "b"


@pytest.mark.parametrize(
    ("rules", "called", "prefilled"),
    [
        ([RunFirst("a", {"x": 1})], "", {"a": {"x": 1}}),
        ([RunFirst("a", {"x": 1})], "b", {}),
        ([RunFirst("a")], "", {}),
        ([RunFirst("a", {})], "", {}),
        ([RunFirst("x", {"x": 1})], "", {}),
        ([RunFirst("a", {"x": 1}), RunFirst("b", {"y": 2})], "", {"a": {"x": 1}, "b": {"y": 2}}),
        ([Children("a", ("b", "c"), {"b": {"x": 1}})], "a", {"b": {"x": 1}}),
        ([Children("a", ("b", "c"), {"b": {"x": 1}})], "", {}),
        ([Children("a", ("b",), {"b": {"x": 1}})], "ab", {}),
        ([Children("a", ("x",), {"x": {"x": 1}})], "a", {}),
        ([Children("a", ("b", "c"), {"b": {"x": 1}}), Children("a", ("c",))], "a", {}),
        # The later rule wins.
        ([Children("a", ("b",), {"b": {"x": 1, "y": 1}}), Children("a", ("b",), {"b": {"x": 2}})], "a",
         {"b": {"x": 2, "y": 1}}),
        # Rules at odds, so that all is allowed: the child is still called with its arguments.
        ([Children("a", ("b",), {"b": {"x": 1}}), MaxCount("b", 1)], "ba", {"b": {"x": 1}}),
    ],
)  # fmt: skip
def test_arguments_that_rules_give(rules: list[ToolRule], called: str, prefilled: dict[str, Any]) -> None:
    assert choose(rules, ATTACHED, calls(called)).prefilled == prefilled


def test_the_only_tool_that_must_be_called() -> None:
    assert Choice(("a",), forced=True).only == "a"
    assert Choice(("a",)).only is None
    assert Choice(("a", "b"), forced=True).only is None
    assert choose([], (), ()) == Choice(())
    assert choose([RunFirst("a")], (), ()) == Choice(())


def test_a_failed_call_is_a_call() -> None:
    failed = (ExecutedCall("a", "no such file"),)
    assert choose([RunFirst("a")], ATTACHED, failed).allowed == ATTACHED
    assert choose([MaxCount("a", 1)], ATTACHED, failed).allowed == ("b", "c", "d")
    assert choose([Children("a", ("b",))], ATTACHED, failed).only == "b"
    assert missing_calls([RequiredBeforeExit("a")], ATTACHED, failed) == ()


@pytest.mark.parametrize(
    ("rule", "terminal", "goes_on", "parallel"),
    [
        (RunFirst("a"), False, False, False),
        (Children("a", ("b",)), False, True, False),
        (ParentLast("a", ("b",)), False, False, False),
        (Conditional("a", {"x": "b"}), False, True, False),
        (MaxCount("a", 1), False, False, False),
        (ContinueLoop("a"), False, True, False),
        (ExitLoop("a"), True, False, False),
        (RequiredBeforeExit("a"), False, False, False),
        (RequiresApproval("a"), False, False, True),
    ],
)
def test_what_each_rule_says_after_a_call(rule: ToolRule, terminal: bool, goes_on: bool, parallel: bool) -> None:
    assert (is_terminal([rule], "a"), continues([rule], "a"), allows_parallel([rule])) == (terminal, goes_on, parallel)
    assert not is_terminal([rule], "b")
    assert not continues([rule], "b")
    assert (needs_approval([rule], "a") is rule) == isinstance(rule, RequiresApproval)
    assert needs_approval([rule], "b") is None


def test_parallel_calls_need_all_rules_to_agree() -> None:
    assert allows_parallel([])
    assert not allows_parallel([RequiresApproval("a"), ExitLoop("b")])


def test_the_first_of_two_approvals_holds() -> None:
    first = RequiresApproval("a", 60, "approve")
    assert needs_approval([RequiresApproval("b"), first, RequiresApproval("a")], "a") is first


@pytest.mark.parametrize(
    ("rules", "called", "expected"),
    [
        ([RequiredBeforeExit("b"), RequiredBeforeExit("a"), RequiredBeforeExit("b")], "", ("b", "a")),
        ([RequiredBeforeExit("b"), RequiredBeforeExit("a")], "b", ("a",)),
        ([RequiredBeforeExit("b")], "ab", ()),
        ([RequiredBeforeExit("x")], "", ()),
        ([ExitLoop("a")], "", ()),
        # Both of one tool: its call satisfies the one and the other ends the turn.
        ([ExitLoop("a"), RequiredBeforeExit("a")], "a", ()),
    ],
)
def test_what_is_still_to_be_called(rules: list[ToolRule], called: str, expected: tuple[str, ...]) -> None:
    assert missing_calls(rules, ATTACHED, calls(called)) == expected


# Words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "name", "called", "reason"),
    [
        (RunFirst("a"), "b", "", "A request begins with a call of a."),
        (Children("a", ("b", "c")), "d", "a", "Directly after a, the next call must be one of: b, c."),
        (ParentLast("a", ("b",)), "b", "", "Only directly after a may these be called, and no other may be then: b."),
        (ParentLast("a", ("b",)), "c", "a", "Only directly after a may these be called, and no other may be then: b."),
        (WITH_DEFAULT, "b", "a",
         'What a returns decides the call that follows it: "sun" leads to b; all else leads to d.'),
        (MaxCount("a", 1), "a", "a", "Calls of a allowed in one request: 1."),
    ],
)  # fmt: skip
def test_a_violation_names_what_is_allowed_and_why(rule: ToolRule, name: str, called: str, reason: str) -> None:
    others = (ContinueLoop("b"), ExitLoop("c"), RequiredBeforeExit("c"), RequiresApproval("b"), MaxCount("x", 9))
    rules: list[ToolRule] = [*others, rule]
    choice = choose(rules, ATTACHED, calls(called))
    assert name not in choice.allowed
    assert violation(rules, name, choice) == (
        f"Nothing was run: the tool rules do not allow a call of {name} now. "
        f"Tools that may be called: {', '.join(choice.allowed)}.\nProbable reason: {reason}"
    )


def test_a_violation_without_a_reason_or_without_tools() -> None:
    text = violation([], "a", Choice(()))
    assert text == "Nothing was run: the tool rules do not allow a call of a now. Tools that may be called: none."


def test_a_rule_that_is_not_at_work_is_no_reason() -> None:
    rules: list[ToolRule] = [RunFirst("b"), Children("c", ("d",)), WEATHER, MaxCount("a", 1)]
    text = violation(rules, "a", choose(rules, ATTACHED, calls("a", "fog")))
    assert text.endswith("\nProbable reason: Calls of a allowed in one request: 1.")


def test_the_reminder_names_every_tool() -> None:
    assert "a, b." in reminder(("a", "b"))


def test_the_section_of_the_prompt() -> None:
    rules: list[ToolRule] = [
        RunFirst("a", {"x": 1}),
        Children("a", ("b", "c")),
        ParentLast("a", ("b",)),
        Conditional("a", {"true": "b", 'a "quote"': "c"}),
        STRICT_WITH_DEFAULT,
        MaxCount("a", 3),
        ContinueLoop("a"),
        ExitLoop("a"),
        RequiredBeforeExit("a"),
        RequiresApproval("a", 3, "approve"),
    ]
    assert describe(rules) == (
        "<tool_usage_rules>\n"
        "These rules say when your tools may be called. A call that breaks one of them is not run.\n"
        "<tool_rule>\nDirectly after a, the next call must be one of: b, c.\n</tool_rule>\n"
        "<tool_rule>\nOnly directly after a may these be called, and no other may be then: b.\n</tool_rule>\n"
        '<tool_rule>\nWhat a returns decides the call that follows it: "true" leads to b; "a \\"quote\\"" leads to c.'
        "\n</tool_rule>\n"
        '<tool_rule>\nWhat a returns decides the call that follows it: "sun" leads to b.\n</tool_rule>\n'
        "<tool_rule>\nCalls of a allowed in one request: 3.\n</tool_rule>\n"
        "<tool_rule>\nAfter a you go on with another step.\n</tool_rule>\n"
        "<tool_rule>\nA call of a ends your turn.\n</tool_rule>\n"
        "</tool_usage_rules>"
    )


@pytest.mark.parametrize("rule", [RunFirst("a"), RequiredBeforeExit("a"), RequiresApproval("a")])
def test_rules_that_render_nothing(rule: ToolRule) -> None:
    assert describe([rule]) == ""
    assert describe([]) == ""


# What holds of all rules ------------------------------------------------------------------------------------

_NAME = st.sampled_from([*ATTACHED, "x"])
_NAMES = st.lists(_NAME, max_size=3).map(tuple)
_RULE: st.SearchStrategy[ToolRule] = st.one_of(
    st.builds(RunFirst, _NAME, st.none() | st.just({"k": 1})),
    st.builds(Children, _NAME, _NAMES),
    st.builds(ParentLast, _NAME, _NAMES),
    st.builds(Conditional, _NAME, st.dictionaries(st.sampled_from(["", "1"]), _NAME), st.none() | _NAME, st.booleans()),
    st.builds(MaxCount, _NAME, st.integers(1, 3)),
    st.builds(ContinueLoop, _NAME),
    st.builds(ExitLoop, _NAME),
    st.builds(RequiredBeforeExit, _NAME),
    st.builds(RequiresApproval, _NAME),
)
_CALLED = st.lists(st.builds(ExecutedCall, _NAME, st.sampled_from(["", "1"])), max_size=5)


@settings(max_examples=50, deadline=None)
@given(st.lists(_RULE, max_size=5), st.permutations(ATTACHED), _CALLED)
def test_there_is_always_a_choice_among_the_attached(rules: list[ToolRule], attached: list[str], called: Any) -> None:
    choice = choose(rules, attached, called)
    assert choice.allowed
    assert [name for name in attached if name in choice.allowed] == list(choice.allowed)
    assert set(choice.prefilled) <= set(choice.allowed)
    for name in set(attached) - set(choice.allowed):
        assert "Probable reason: " in violation(rules, name, choice)


@settings(max_examples=50, deadline=None)
@given(st.lists(_RULE, max_size=4), _CALLED, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(rules: list[ToolRule], called: list[ExecutedCall], random: Any) -> None:
    mixed = random.sample(rules, len(rules))
    one, other = choose(rules, ATTACHED, called), choose(mixed, ATTACHED, called)
    assert (one.allowed, one.forced) == (other.allowed, other.forced)
