"""The plan for each call of a reply: it is run, or answered without being run. Pure.

In this order: what the client answered; tools that are not there; tool rules; arguments. Calls that come from an
earlier run were judged by the rules, and got their arguments, when they were made: what was approved is what runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.agent.core.approvals import Answer, find_answers, settle_call
from services.agent.core.calls.arguments import Problem, arguments_to_json, parse
from services.agent.core.calls.offers import CLIENT, Offer, offer
from services.agent.core.continuation import HEARTBEAT
from services.agent.core.facts import RunTools
from services.agent.core.messages import Call, Return
from services.agent.core.policy import POLICIES
from services.agent.core.ports import ToolInfo
from services.agent.core.rules.rule_words import violation
from services.agent.core.turn import Turn
from services.agent.core.window.sizes import storable_return


@dataclass(frozen=True, slots=True)
class Plan:
    """A Call is to be run, a Return is its answer already; in the order of the calls. `invalid`: see ToolsReturned."""

    calls: tuple[Call | Return, ...]
    invalid: bool = False


def plan(turn: Turn, action: RunTools, attached: Sequence[ToolInfo]) -> Plan:
    """Returns what becomes of the calls; `attached` are the agent's own tools."""
    offered = offer(turn, attached)
    answers = _client_answers(turn, action)
    earlier = action.step == 0
    planned = [
        _plan_call(call, settle_call(call, answers.get(call.id)), turn, offered, earlier) for call in action.calls
    ]
    return Plan(tuple(one for one, _ in planned), any(invalid for _, invalid in planned))


def plan_without_tools(turn: Turn, action: RunTools, answer: Callable[[Call], Return]) -> Plan:
    """Returns the same where the tools are not to be had: what the client answered stays, to all else there is
    `answer`.
    """
    answers = _client_answers(turn, action)
    settled = (settle_call(call, answers.get(call.id)) for call in action.calls)
    return Plan(tuple(answer(one) if isinstance(one, Call) else one for one in settled))


def in_order(calls: Sequence[Call], returns: Iterable[Return]) -> list[Return]:
    """Returns the returns of calls as the reference has them: what the client answered, what it approved, the rest."""
    pairs = sorted(zip(calls, returns, strict=True), key=lambda pair: (not pair[1].by_client, not pair[0].gate))
    return [returned for _, returned in pairs]


def _client_answers(turn: Turn, action: RunTools) -> Mapping[str, Answer]:
    assert turn.reply is not None
    return find_answers(turn.history, turn.reply.message) if any(call.gate for call in action.calls) else {}


def _plan_call(
    original: Call, call: Call | Return, turn: Turn, offered: Offer, earlier: bool
) -> tuple[Call | Return, bool]:
    if isinstance(call, Return):
        return replace(call, text=storable_return(call.text)), False
    tool = offered.tool(call.name)
    if tool is None or (tool.tool_type == CLIENT and earlier and not original.gate):
        known = ", ".join(sorted(tool.name for tool in offered.tools)) or "none"
        return _refusal(call, f"Tool not found: {call.name}. The tools you can call: {known}."), False
    if earlier:
        return _with_arguments(call, turn), False
    if call.name not in offered.choice.allowed:
        return _refusal(call, violation(turn.settings.tool_rules, call.name, offered.choice)), False
    if (problem := offered.misfit(tool)) is not None:
        return _refusal(call, problem.message(call.name)), True
    return _with_arguments(call, turn), False


def _with_arguments(call: Call, turn: Turn) -> Call | Return:
    arguments = parse(call.arguments)
    if isinstance(arguments, Problem):
        return _refusal(call, arguments.message(call.name))
    added = {HEARTBEAT} & arguments.keys() if POLICIES[turn.settings.agent_type].heartbeats else set()
    if not added and not call.arguments.lstrip().startswith('"'):
        # As the model wrote them: what is read and written again may differ in its numbers.
        return call
    own = {name: value for name, value in arguments.items() if name not in added}
    return replace(call, arguments=arguments_to_json(own))


def _refusal(call: Call, sentence: str) -> Return:
    return Return(call.id, call.name, sentence, is_error=True, refused=True)
