"""The decision whether a run goes on after the model replied and its calls, if any, have returned. Pure.

Source: LETTA V1 API, agent loop, continuation. None: the model is called again.
"""

import json
from collections.abc import Sequence
from itertools import groupby

from services.agent.core.facts import Finish, ModelReplied, Remind, Settings, StopReason, ToolsReturned
from services.agent.core.messages import Message, Return, calls_of, gated_calls
from services.agent.core.policy import POLICIES
from services.agent.core.rules.rule_words import reminder
from services.agent.core.rules.tool_rules import ExecutedCall, continues, is_terminal, missing_calls
from services.agent.core.window.context import answered_call_ids

HEARTBEAT = "request_heartbeat"
_FAILED = "The call failed, so you can try again or go on another way."
_RULED = "A tool rule says that another step follows this call."
_ASKED = "You asked to go on after this call."


def after_reply(
    settings: Settings, called: Sequence[ExecutedCall], reply: ModelReplied, returned: ToolsReturned | None
) -> Finish | Remind | None:
    """Returns why the run ends, or what the model is told before it goes on. `called`: see Turn."""
    policy, calls = POLICIES[settings.agent_type], calls_of(reply.message)
    # What an earlier run could call is not known any more.
    attached = reply.offered if reply.step else [rule.tool_name for rule in settings.tool_rules]
    missing = missing_calls(settings.tool_rules, attached, called)
    if not calls:
        if policy.must_call:
            return Finish(StopReason.NO_TOOL_CALL)
        if missing:
            return Remind("required", heartbeat(reminder(missing)))
        return Finish(StopReason.MAX_TOKENS_EXCEEDED if reply.finish == "length" else StopReason.END_TURN)
    if returned is not None and returned.invalid:
        return Finish(StopReason.INVALID_TOOL_CALL)
    end = _by_heartbeat(settings, reply, returned) if policy.heartbeats else _by_call(settings, returned)
    if isinstance(end, Finish) and missing:
        return Remind("required", heartbeat(reminder(missing)))
    return end


def executed_calls(message: Message, *, waited: bool) -> tuple[ExecutedCall, ...]:
    """Returns the calls that a message answers, as tool rules count them.

    A call that was refused was not made, but for those that `waited` for the client: what it denies counts like what
    fails, so that no rule demands it over and over.
    """
    returns = (part for part in message.parts if isinstance(part, Return))
    return tuple(ExecutedCall(part.name, part.text) for part in returns if waited or not part.refused)


def calls_before(history: Sequence[Message]) -> tuple[ExecutedCall, ...]:
    """Returns the calls of the runs that an answer to waiting calls continues, back to the one that began with a
    question.
    """
    gated = {call.id for message in history for call in gated_calls(message)}
    calls: tuple[ExecutedCall, ...] = ()
    for _, group in groupby(reversed(history), key=lambda message: message.run_id):
        run = tuple(group)
        for message in run:
            if message.role == "tool":
                calls = executed_calls(message, waited=not gated.isdisjoint(answered_call_ids(message))) + calls
        if run[-1].role != "approval":
            break
    return calls


def _by_call(settings: Settings, returned: ToolsReturned | None) -> Finish | None:
    """Returns the end of a run after a call that a rule makes the last; any other call goes on."""
    ran = _executed_returns(returned)
    ends = any(is_terminal(settings.tool_rules, part.name) for part in ran)
    return Finish(StopReason.TOOL_RULE) if ends else None


def _by_heartbeat(settings: Settings, reply: ModelReplied, returned: ToolsReturned | None) -> Finish | Remind:
    """Returns the reminder to go on (asked for by the model or a rule, or after a failed call), else the run's end."""
    heartbeat_wanted = any(map(wants_heartbeat, (call.arguments for call in calls_of(reply.message))))
    ran = _executed_returns(returned)
    if any(is_terminal(settings.tool_rules, part.name) for part in ran):
        return Finish(StopReason.TOOL_RULE if heartbeat_wanted else StopReason.END_TURN)
    if any(continues(settings.tool_rules, part.name) for part in ran):
        return Remind("heartbeat", heartbeat(_RULED))
    if returned is not None and any(isinstance(part, Return) and part.is_error for part in returned.message.parts):
        return Remind("heartbeat", heartbeat(_FAILED))
    return Remind("heartbeat", heartbeat(_ASKED)) if heartbeat_wanted else Finish(StopReason.END_TURN)


def wants_heartbeat(arguments: str) -> bool:
    """Returns whether a call asks to go on after it."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and str(value.get(HEARTBEAT, "")).lower() == "true"


def heartbeat(reason: str) -> str:
    """Returns the message that lets a model go on, in the reference's form, by which clients know it from what people
    say.
    """
    return json.dumps({"type": "heartbeat", "reason": reason})


def _executed_returns(returned: ToolsReturned | None) -> list[Return]:
    if returned is None:
        return []
    return [part for part in returned.message.parts if isinstance(part, Return) and not part.refused]
