"""What becomes of each call of a reply: it is run, or answered without being run. Pure.

In this order: what the client answered; tools that are not there; tool rules; arguments.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.agent.approvals import answers, settled
from services.agent.arguments import Problem, check_prefilled, parse, prefill
from services.agent.continuation import HEARTBEAT
from services.agent.facts import RunTools
from services.agent.messages import Call, Return
from services.agent.offers import CLIENT, Offer, offer
from services.agent.policy import POLICIES
from services.agent.ports import ToolInfo
from services.agent.rule_words import violation
from services.agent.sizes import clamp_return
from services.agent.turn import Turn


@dataclass(frozen=True, slots=True)
class Plan:
    """A Call is to be run, a Return is its answer already; in the order of the calls. `invalid`: see ToolsReturned."""

    calls: tuple[Call | Return, ...]
    invalid: bool = False


def plan(turn: Turn, action: RunTools, attached: Sequence[ToolInfo]) -> Plan:
    """What becomes of the calls; `attached` are the agent's own tools."""
    offered = offer(turn, attached)
    assert turn.reply is not None
    given = answers(turn.history, turn.reply.message) if any(call.gate for call in action.calls) else {}
    planned = [_planned(call, settled(call, given.get(call.id)), turn, offered) for call in action.calls]
    return Plan(tuple(one for one, _ in planned), any(invalid for _, invalid in planned))


def _planned(asked: Call, call: Call | Return, turn: Turn, offered: Offer) -> tuple[Call | Return, bool]:
    if isinstance(call, Return):
        return replace(call, text=clamp_return(call.text, turn.settings.context_window_limit)), False
    tool = next((tool for tool in offered.tools if tool.name == call.name), None)
    if tool is None or (tool.tool_type == CLIENT and not asked.gate):
        known = ", ".join(sorted(tool.name for tool in offered.tools)) or "none"
        return _refused(call, f"Tool not found: {call.name}. The tools you can call: {known}."), False
    # A call that was approved was allowed when it was made.
    if not asked.gate and call.name not in offered.choice.allowed:
        return _refused(call, violation(turn.settings.tool_rules, call.name, offered.choice)), False
    return _with_arguments(call, tool, turn, offered)


def _with_arguments(call: Call, tool: ToolInfo, turn: Turn, offered: Offer) -> tuple[Call | Return, bool]:
    values = offered.choice.prefilled.get(call.name, {})
    if values and (problem := check_prefilled(values, tool.parameters)) is not None:
        return _refused(call, problem.told(call.name)), True
    arguments = parse(call.arguments)
    if isinstance(arguments, Problem):
        return _refused(call, arguments.told(call.name)), False
    given = prefill(arguments, values)
    if POLICIES[turn.settings.agent_type].heartbeats:
        given.pop(HEARTBEAT, None)
    # As the model wrote them where nothing changes: what is read and written again may differ in its numbers.
    return (call if given == arguments else replace(call, arguments=json.dumps(given))), False


def _refused(call: Call, sentence: str) -> Return:
    return Return(call.id, call.name, sentence, is_error=True, refused=True)
