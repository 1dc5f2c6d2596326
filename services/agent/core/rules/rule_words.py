"""The sentences about tool rules for the model: in its system prompt, after a wrong call, before it may stop. Pure."""

from collections.abc import Iterable, Sequence
from typing import assert_never

import orjson

from services.agent.core.rules.tool_rules import (
    Children,
    Choice,
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

_PREAMBLE = "These rules say when your tools may be called. A call that breaks one of them is not run."


def describe(rules: Iterable[ToolRule]) -> str:
    """Returns the <tool_usage_rules> section of the system prompt, tags included; empty when no rule says anything."""
    silent = RunFirst | RequiredBeforeExit | RequiresApproval
    sentences = [_sentence(rule) for rule in rules if not isinstance(rule, silent)]
    if not sentences:
        return ""
    elements = (f"<tool_rule>\n{sentence}\n</tool_rule>" for sentence in sentences)
    return "\n".join(("<tool_usage_rules>", _PREAMBLE, *elements, "</tool_usage_rules>"))


def violation(rules: Iterable[ToolRule], name: str, choice: Choice) -> str:
    """Returns the answer to a call of an attached tool that `choice` does not allow; it was not run."""
    allowed = ", ".join(choice.allowed) or "none"
    text = f"Nothing was run: the tool rules do not allow a call of {name} now. Tools that may be called: {allowed}."
    reasons = dict.fromkeys(_sentence(rule) for rule in rules if _may_forbid(rule, name, choice))
    return f"{text}\nProbable reason: {' '.join(reasons)}" if reasons else text


def reminder(names: Sequence[str]) -> str:
    """Returns the message to a model that would stop while `names` still have to be called."""
    return f"The turn cannot end yet. Still to be called: {', '.join(names)}. Call what is missing, then finish."


def _may_forbid(rule: ToolRule, name: str, choice: Choice) -> bool:
    """Returns whether the rule can be why `name` is not among what is allowed."""
    match rule:
        case RunFirst(tool_name=tool):
            return choice.forced and tool in choice.allowed
        case Children(children=children):
            return _leaves_only(children, choice) and name not in children
        case ParentLast(children=children):
            return name in children or _leaves_only(children, choice)
        case Conditional(child_output_mapping=mapping, default_child=default):
            return _leaves_only((*mapping.values(), default), choice)
        case MaxCount(tool_name=tool):
            return tool == name
        case ContinueLoop() | ExitLoop() | RequiredBeforeExit() | RequiresApproval():
            return False
    assert_never(rule)


def _leaves_only(names: Iterable[str | None], choice: Choice) -> bool:
    return choice.forced and set(choice.allowed) <= set(names)


def _sentence(rule: ToolRule) -> str:
    match rule:
        case RunFirst(tool_name=tool):
            return f"A request begins with a call of {tool}."
        case Children(tool_name=tool, children=children):
            return f"Directly after {tool}, the next call must be one of: {', '.join(children)}."
        case ParentLast(tool_name=tool, children=children):
            return f"Only directly after {tool} may these be called, and no other may be then: {', '.join(children)}."
        case Conditional():
            return _cases(rule)
        case MaxCount(tool_name=tool, max_count=most):
            return f"Calls of {tool} allowed in one request: {most}."
        case ContinueLoop(tool_name=tool):
            return f"After {tool} you go on with another step."
        case ExitLoop(tool_name=tool):
            return f"A call of {tool} ends your turn."
        case RequiredBeforeExit(tool_name=tool):
            return f"Your turn cannot end before {tool} was called."
        case RequiresApproval(tool_name=tool):
            return f"Calls of {tool} wait for approval."
    assert_never(rule)


def _cases(rule: Conditional) -> str:
    cases = [f"{orjson.dumps(case).decode()} leads to {tool}" for case, tool in rule.child_output_mapping.items()]
    if rule.default_child is not None and not rule.require_output_mapping:
        cases.append(f"all else leads to {rule.default_child}")
    return f"What {rule.tool_name} returns decides the call that follows it: {'; '.join(cases)}."
