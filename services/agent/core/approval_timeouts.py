"""Calls that nobody answers in time are answered by their rules. Pure.

A rule may say for how long its calls wait, counted from the reply that made them, and what is answered then. Calls
without such a rule, and those that the client runs itself, wait for ever.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from services.agent.core.approvals import find_answers, waiting_calls
from services.agent.core.messages import Call, Decision, Message, calls_of
from services.agent.core.rules.tool_rules import RequiresApproval, ToolRule, needs_approval


def due_at(history: Sequence[Message], pending: Message, rules: Sequence[ToolRule]) -> datetime | None:
    """Returns when the first of the calls of `pending` that still wait is answered by its rule."""
    return min((end for _, _, end in _limited_calls(history, pending, rules)), default=None)


def overdue_answers(
    history: Sequence[Message], pending: Message, rules: Sequence[ToolRule], now: datetime
) -> tuple[Decision, ...]:
    """Returns the answers to the calls of `pending` whose time is over, in the order of the calls."""
    return tuple(_answer(call, rule) for call, rule, end in _limited_calls(history, pending, rules) if end <= now)


def _limited_calls(
    history: Sequence[Message], pending: Message, rules: Sequence[ToolRule]
) -> Iterator[tuple[Call, RequiresApproval, datetime]]:
    """Yields the calls that wait for a limited time, with their rules and the ends of that time."""
    for call in waiting_calls(calls_of(pending), find_answers(history, pending)):
        rule = needs_approval(rules, call.name) if call.gate == "approval" else None
        if rule is not None and rule.timeout_seconds is not None:
            yield call, rule, pending.created_at + timedelta(seconds=rule.timeout_seconds)


def _answer(call: Call, rule: RequiresApproval) -> Decision:
    approve = rule.on_timeout == "approve"
    verdict = "approved" if approve else "denied"
    reason = f"Nobody answered within {rule.timeout_seconds:.10g} s, so the call was {verdict} by its rule."
    return Decision(call.id, approve, reason, by_rule=True)
