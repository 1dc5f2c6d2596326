"""Tool rules that follow a tool's new name. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

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


def rename(rules: Sequence[ToolRule], old: str, new: str) -> tuple[ToolRule, ...]:
    """Returns the rules with `new` wherever `old` stood; what is said twice then is said once."""
    renamed: list[ToolRule] = []
    for rule in rules:
        if (after := _rename_one(rule, old, new)) not in renamed:
            renamed.append(after)
    return tuple(renamed)


def with_approval_of(rules: Sequence[ToolRule], old: str, new: str) -> tuple[ToolRule, ...]:
    """Returns the rules, and for each by which calls of `old` wait the same for `new`."""
    waiting = [rule for rule in rules if isinstance(rule, RequiresApproval) and rule.tool_name == old]
    added = (replace(rule, tool_name=new) for rule in waiting)
    return (*rules, *(rule for rule in added if rule not in rules))


def _rename_one(rule: ToolRule, old: str, new: str) -> ToolRule:
    def name(present: str) -> str:
        return new if present == old else present

    match rule:
        case Children():
            arguments = {name(child): args for child, args in rule.child_args.items()}
            children = tuple(map(name, rule.children))
            return replace(rule, tool_name=name(rule.tool_name), children=children, child_args=arguments)
        case ParentLast():
            return replace(rule, tool_name=name(rule.tool_name), children=tuple(map(name, rule.children)))
        case Conditional():
            return replace(
                rule,
                tool_name=name(rule.tool_name),
                child_output_mapping={case: name(child) for case, child in rule.child_output_mapping.items()},
                default_child=None if rule.default_child is None else name(rule.default_child),
            )
        case RunFirst() | MaxCount() | ContinueLoop() | ExitLoop() | RequiredBeforeExit() | RequiresApproval():
            return replace(rule, tool_name=name(rule.tool_name))
    assert_never(rule)
