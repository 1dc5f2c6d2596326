"""From what a model gave to the message that is stored. Pure."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from uuid import UUID

from services.agent.core.calls.arguments import Problem, arguments_to_json, parse, prefill
from services.agent.core.calls.offers import THINKING, Offer
from services.agent.core.facts import Settings, Usage
from services.agent.core.messages import Call, Message, Part, Reasoning, has_part, storable_part
from services.agent.core.ports import Reply
from services.agent.core.turn import call_key
from services.common.core.storable import storable, storable_json

# No model counts more tokens than this, whatever its provider says.
MOST_TOKENS = 2**31 - 1
_COUNTS = tuple(each.name for each in fields(Usage))


def sanitize_reply(reply: Reply) -> Reply:
    """Returns the reply with what can be stored and added up, but for its parts: see `reply_parts`."""
    counts = {name: tokens for name in _COUNTS if (tokens := getattr(reply.usage, name)) is not None}
    kept = {name: tokens_of(tokens) for name, tokens in counts.items()}
    outputs = None if reply.outputs is None else storable_json(reply.outputs)
    trace = None if reply.trace is None else storable(reply.trace)
    if (kept, outputs, trace) == (counts, reply.outputs, reply.trace):
        return reply
    return replace(reply, usage=replace(reply.usage, **kept), outputs=outputs, trace=trace)


def with_zeros(usage: Usage) -> Usage:
    """Returns the usage of a reply that came whole: there what a provider does not count is 0, as in the reference."""
    return replace(usage, **{name: 0 for name in _COUNTS if getattr(usage, name) is None})


def tokens_of(figure: int | str) -> int:
    """Returns a number of tokens that a provider gave, within reason; 0 for what is none."""
    try:
        return min(max(int(figure), 0), MOST_TOKENS)
    except ValueError:
        return 0


def reply_parts(
    parts: Iterable[Part], *, settings: Settings, offered: Offer, run_id: UUID, step: int
) -> tuple[Part, ...]:
    """Returns the parts of a reply with a key and, where it waits for the client, a gate on each call.

    Where calls cannot be parallel, those after the first are left out. A call has the arguments that tool rules give
    already: what is shown is what runs.
    """
    return tuple(_shape_parts(map(storable_part, parts), settings, offered, run_id, step))


def restore_thoughts(history: Iterable[Message]) -> list[Message]:
    """Returns the history with prompted thoughts where the model wrote them: in the arguments of the calls that follow
    them.
    """
    return [
        replace(message, parts=tuple(_restore_parts(message.parts))) if _has_prompted_thoughts(message) else message
        for message in history
    ]


def _has_prompted_thoughts(message: Message) -> bool:
    if message.role != "assistant" or not has_part(message, Reasoning):
        return False
    return any(isinstance(part, Reasoning) and part.prompted for part in message.parts)


def _restore_parts(parts: Iterable[Part]) -> Iterator[Part]:
    thought = ""
    for part in parts:
        if isinstance(part, Reasoning) and part.prompted:
            thought = part.text
        elif isinstance(part, Call) and thought:
            yield replace(part, arguments=_with_thought(part.arguments, thought))
            thought = ""
        else:
            yield part


def _with_thought(arguments: str, thought: str) -> str:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return arguments_to_json({THINKING: thought, **value}) if isinstance(value, dict) else arguments


def _shape_parts(parts: Iterable[Part], settings: Settings, offered: Offer, run_id: UUID, step: int) -> Iterator[Part]:
    calls = 0
    for part in parts:
        if not isinstance(part, Call):
            yield part
            continue
        if calls and not offered.parallel:
            continue
        if offered.thinks(settings, part.name):
            thought, part = _inner_thought(part)
            if thought:
                yield Reasoning(thought, prompted=True)
        gate = offered.gate(settings, part.name)
        arguments = _prefilled_arguments(part, offered)
        yield replace(part, key=call_key(run_id, step, calls), arguments=arguments, gate=gate)
        calls += 1


def _prefilled_arguments(call: Call, offered: Offer) -> str:
    values, arguments = offered.values(call.name), parse(call.arguments)
    return (
        call.arguments
        if not values or isinstance(arguments, Problem)
        else arguments_to_json(prefill(arguments, values))
    )


def _inner_thought(call: Call) -> tuple[str, Call]:
    """Returns what the model thought in an argument of the call, and the call without it."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return "", call
    if not isinstance(arguments, dict) or not isinstance(arguments.get(THINKING), str):
        return "", call
    thought = arguments.pop(THINKING)
    return storable(thought), replace(call, arguments=arguments_to_json(arguments))
