"""Tool rules as JSON: the reference's shape there and back, and what is said of a wrong one."""

import json
from typing import Any

import letta_client.types as letta
import orjson
import pytest
from pydantic import BaseModel

from services.agent.core.rules.rule_json import rules_from_json, rules_to_json
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

NODES = [{"name": "b", "args": {"x": 1}}]
# Rule, its JSON without tool_name and prompt_template, and the SDK's class for it.
SHAPES: list[tuple[ToolRule, dict[str, Any], type[BaseModel]]] = [
    (RunFirst("a"), {"type": "run_first", "args": None}, letta.InitToolRule),
    (RunFirst("a", {"x": [1]}), {"type": "run_first", "args": {"x": [1]}}, letta.InitToolRule),
    (Children("a", ("b", "c")), {"type": "constrain_child_tools", "children": ["b", "c"], "child_arg_nodes": None},
     letta.ChildToolRule),
    (Children("a", ("b",), {"b": {"x": 1}}),
     {"type": "constrain_child_tools", "children": ["b"], "child_arg_nodes": NODES}, letta.ChildToolRule),
    (ParentLast("a", ("b",)), {"type": "parent_last_tool", "children": ["b"]}, letta.ParentToolRule),
    (Conditional("a", {"true": "b"}, "c", True),
     {"type": "conditional", "default_child": "c", "child_output_mapping": {"true": "b"},
      "require_output_mapping": True}, letta.ConditionalToolRule),
    (MaxCount("a", 3), {"type": "max_count_per_step", "max_count_limit": 3}, letta.MaxCountPerStepToolRule),
    (ContinueLoop("a"), {"type": "continue_loop"}, letta.ContinueToolRule),
    (ExitLoop("a"), {"type": "exit_loop"}, letta.TerminalToolRule),
    (RequiredBeforeExit("a"), {"type": "required_before_exit"}, letta.RequiredBeforeExitToolRule),
    (RequiresApproval("a"), {"type": "requires_approval"}, letta.RequiresApprovalToolRule),
    (RequiresApproval("a", 1.5, "approve"),
     {"type": "requires_approval", "timeout_seconds": 1.5, "on_timeout": "approve"}, letta.RequiresApprovalToolRule),
    (RequiresApproval("a", 60), {"type": "requires_approval", "timeout_seconds": 60, "on_timeout": "deny"},
     letta.RequiresApprovalToolRule),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "shape", "model"), SHAPES)
def test_the_shape_of_each_rule(rule: ToolRule, shape: dict[str, Any], model: type[BaseModel]) -> None:
    written = rules_to_json([rule])
    assert written == [{"tool_name": "a", "prompt_template": None, **shape}]
    assert rules_from_json(json.loads(json.dumps(written))) == (rule,)
    assert orjson.loads(orjson.dumps(written)) == written
    # Strict: an extension is the SDK's to keep, every field that it knows must be of its type.
    assert set(model.model_fields) <= set(written[0])
    model.model_validate(written[0], strict=True)


@pytest.mark.parametrize(
    ("item", "rule"),
    [
        ({"type": "run_first"}, RunFirst("a")),
        ({"type": "run_first", "args": {}}, RunFirst("a", {})),
        ({"type": "constrain_child_tools", "children": []}, Children("a", ())),
        (
            {
                "type": "constrain_child_tools",
                "children": ["b"],
                "child_arg_nodes": [{"name": "b"}, {"name": "b", "args": {}}, {"name": "b", "args": None}],
            },
            Children("a", ("b",)),
        ),
        ({"type": "conditional", "child_output_mapping": {}}, Conditional("a", {})),
        (
            {"type": "conditional", "child_output_mapping": {"": "b"}, "require_output_mapping": None},
            Conditional("a", {"": "b"}),
        ),
        ({"type": "exit_loop", "prompt_template": "Call {{ tool }}.", "id": 3}, ExitLoop("a")),
        ({"type": "requires_approval", "timeout_seconds": None, "on_timeout": None}, RequiresApproval("a")),
        ({"type": "requires_approval", "timeout_seconds": 31_536_000}, RequiresApproval("a", 31_536_000)),
    ],
)
def test_what_may_be_left_out(item: dict[str, Any], rule: ToolRule) -> None:
    assert rules_from_json([{"tool_name": "a", **item}]) == (rule,)


def test_nothing_is_nothing() -> None:
    assert rules_from_json([]) == ()
    assert rules_to_json(()) == []


TYPES = (
    "run_first, constrain_child_tools, parent_last_tool, conditional, max_count_per_step, continue_loop, exit_loop, "
    "required_before_exit, requires_approval"
)
CHILD = {"type": "constrain_child_tools", "tool_name": "a", "children": ["b", "c"]}
CONDITION = {"type": "conditional", "tool_name": "a", "child_output_mapping": {}}
APPROVAL = {"type": "requires_approval", "tool_name": "a"}
SECONDS = "expected a number of seconds above 0 and at most 31536000, or null"
COUNT = "expected an integer from 1 to 2147483647"


def counted(limit: Any) -> dict[str, Any]:
    return {"type": "max_count_per_step", "tool_name": "a", "max_count_limit": limit}


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("exit_loop", ": expected an object, got 'exit_loop'"),
        (None, ": expected an object, got None"),
        ({"tool_name": "a"}, ".type: expected a text that is not empty, but it is missing"),
        ({"type": 3, "tool_name": "a"}, ".type: expected a text that is not empty, got 3"),
        ({"type": "exit", "tool_name": "a"}, f".type: expected one of {TYPES}, got 'exit'"),
        ({"type": "exit_loop"}, ".tool_name: expected a text that is not empty, but it is missing"),
        ({"type": "exit_loop", "tool_name": ""}, ".tool_name: expected a text that is not empty, got ''"),
        ({"type": "exit_loop", "tool_name": None}, ".tool_name: expected a text that is not empty, got None"),
        ({"type": "run_first", "tool_name": "a", "args": [1]}, ".args: expected an object or null, got [1]"),
        ({"type": "parent_last_tool", "tool_name": "a"},
         ".children: expected a list of texts that are not empty, but it is missing"),
        ({**CHILD, "children": "b"}, ".children: expected a list of texts that are not empty, got 'b'"),
        ({**CHILD, "children": ["b", 1]}, ".children: expected a list of texts that are not empty, got ['b', 1]"),
        ({**CHILD, "child_arg_nodes": {}}, ".child_arg_nodes: expected a list of objects, or null, got {}"),
        ({**CHILD, "child_arg_nodes": ["b"]}, ".child_arg_nodes[0]: expected an object, got 'b'"),
        ({**CHILD, "child_arg_nodes": [{"args": {}}]},
         ".child_arg_nodes[0].name: expected a text that is not empty, but it is missing"),
        ({**CHILD, "child_arg_nodes": [{"name": "d"}]},
         ".child_arg_nodes[0].name: expected one of the children (b, c), got 'd'"),
        ({**CHILD, "child_arg_nodes": [{"name": "b"}, {"name": "c", "args": 3}]},
         ".child_arg_nodes[1].args: expected an object or null, got 3"),
        ({"type": "conditional", "tool_name": "a"},
         ".child_output_mapping: expected an object whose values are names of tools, but it is missing"),
        ({**CONDITION, "child_output_mapping": {"x": None}},
         ".child_output_mapping: expected an object whose values are names of tools, got {'x': None}"),
        ({**CONDITION, "default_child": ""}, ".default_child: expected a text that is not empty, got ''"),
        ({**CONDITION, "require_output_mapping": "yes"},
         ".require_output_mapping: expected true or false, got 'yes'"),
        (counted(0), f".max_count_limit: {COUNT}, got 0"),
        (counted(True), f".max_count_limit: {COUNT}, got True"),
        (counted(1.5), f".max_count_limit: {COUNT}, got 1.5"),
        (counted(2**31), f".max_count_limit: {COUNT}, got 2147483648"),
        ({**APPROVAL, "timeout_seconds": 0}, f".timeout_seconds: {SECONDS}, got 0"),
        ({**APPROVAL, "timeout_seconds": -1.5}, f".timeout_seconds: {SECONDS}, got -1.5"),
        ({**APPROVAL, "timeout_seconds": True}, f".timeout_seconds: {SECONDS}, got True"),
        ({**APPROVAL, "timeout_seconds": float("nan")}, f".timeout_seconds: {SECONDS}, got nan"),
        ({**APPROVAL, "timeout_seconds": 10**30}, f".timeout_seconds: {SECONDS}, got 1{'0' * 30}"),
        ({**APPROVAL, "on_timeout": "ask"}, ".on_timeout: expected approve or deny, got 'ask'"),
        ({**APPROVAL, "on_timeout": 3}, ".on_timeout: expected approve or deny, got 3"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_named(item: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^tool_rules\[1\]") as refused:
        rules_from_json([{"type": "exit_loop", "tool_name": "a"}, item])
    assert str(refused.value) == f"tool_rules[1]{sentence}"


def test_long_values_are_cut() -> None:
    with pytest.raises(ValueError, match="got 'x") as refused:
        rules_from_json([{"type": "x" * 10_000, "tool_name": "a"}])
    assert len(str(refused.value)) < 350
