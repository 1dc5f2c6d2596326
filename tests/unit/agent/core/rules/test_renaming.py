"""Tool rules follow a tool's new name, wherever it stands."""

from services.agent.core.rules.renaming import rename, with_approval_of
from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
from services.agent.core.rules.tool_rules import RequiresApproval, needs_approval

KINDS = [
    {"type": "run_first", "tool_name": "a", "args": {"x": 1}},
    {"type": "constrain_child_tools", "tool_name": "a", "children": ["a", "b"],
     "child_arg_nodes": [{"name": "a", "args": {"x": 1}}]},
    {"type": "parent_last_tool", "tool_name": "b", "children": ["a"]},
    {"type": "conditional", "tool_name": "b", "child_output_mapping": {"a": "a", "yes": "b"}, "default_child": "a"},
    {"type": "max_count_per_step", "tool_name": "a", "max_count_limit": 2},
    {"type": "continue_loop", "tool_name": "a"},
    {"type": "exit_loop", "tool_name": "a"},
    {"type": "required_before_exit", "tool_name": "a"},
    {"type": "requires_approval", "tool_name": "a", "timeout_seconds": 5.0, "on_timeout": "deny"},
]  # fmt: skip


def test_every_kind_follows() -> None:
    rules = rules_from_json(KINDS)
    after = rename(rules, "a", "new")
    assert len(after) == len(rules)
    text = str(rules_to_json(after))
    # What a tool returned is not the name of a tool.
    assert text.count("'a'") == 1
    assert "'child_output_mapping': {'a': 'new', 'yes': 'b'}" in text
    assert rename(after, "new", "a") == rules


def test_other_names_stay_and_what_is_said_twice_is_said_once() -> None:
    rules = (RequiresApproval("a"), RequiresApproval("b"), RequiresApproval("new"))
    assert rename(rules, "a", "new") == (RequiresApproval("new"), RequiresApproval("b"))
    assert rename(rules, "c", "d") == rules


def test_an_approval_holds_under_both_names_meanwhile() -> None:
    rules = rules_from_json(KINDS)
    between = with_approval_of(rules, "a", "new")
    assert needs_approval(between, "a")
    assert needs_approval(between, "new") == RequiresApproval("new", 5.0, "deny")
    assert with_approval_of(between, "a", "new") == between
    assert rename(between, "a", "new") == rename(rules, "a", "new")
    assert with_approval_of(rules, "b", "c") == rules
