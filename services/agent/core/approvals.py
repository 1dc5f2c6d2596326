"""Calls that wait for the client, and its answers. Pure.

A reply may hold calls that are not run before the client has answered: to be approved, or to be run by the client
itself. The run ends with requires_approval, and the conversation waits. The answers come as a message of role
approval, which begins a run of its own. A client answers all calls that wait at once; some may have been answered by
their time-out before, and the first answer to a call counts. What was approved and what never had to wait runs, what
was refused is told to the model, what the client returned is put in its place.

Whether calls wait is read from the history alone. When the run that began with the last answer is stopped before their
returns are stored, they wait no longer: the answer was given, and the next message must not set them off again. The
same answer once more is no mistake (the client may not know what became of it): the conversation goes on without it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid5

from services.agent.core.messages import Call, Decision, Message, Return, Text, calls_of, gated_calls, request_id

Answer = Decision | Return


@dataclass(frozen=True, slots=True)
class InputFits:
    """The input can be taken as it is."""


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """A call waits for the client, so nothing else can be said. `request_id`: the id it is shown under."""

    request_id: UUID


@dataclass(frozen=True, slots=True)
class NothingWaits:
    """There is an answer, and no call waits for one."""


@dataclass(frozen=True, slots=True)
class UnknownCalls:
    """Answers to calls that do not wait, or not to all that do; `given` has the request of one that names no call."""

    wanted: tuple[str, ...]
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepeatedAnswer:
    """All of it was answered lately."""


Verdict = InputFits | ApprovalPending | NothingWaits | UnknownCalls | RepeatedAnswer


def check_input(history: Sequence[Message], input_messages: Sequence[Message], *, silent: bool = False) -> Verdict:
    """Returns whether an input can be taken by a conversation with this history; one that is `silent` says nothing, so
    that what waits can go on waiting.
    """
    answers = tuple(part for message in input_messages for part in answers_in(message))
    pending = pending_message(history)
    if pending is None:
        return _check_late_answers(history, answers) if answers else InputFits()
    if not answers and silent:
        return InputFits()
    if not answers:
        return ApprovalPending(request_id(pending.id))
    requests = _calls_by_request(pending)
    unknown = [part for part in answers if not any(_is_for(part, request, call) for request, call in requests)]
    waiting = waiting_calls(calls_of(pending), find_answers(history, pending))
    by_rule = all(isinstance(part, Decision) and part.by_rule for part in answers)
    covered = by_rule or all(
        any(_is_for(part, str(request_id(pending.id)), call) for part in answers) for call in waiting
    )
    if covered and not unknown:
        return InputFits()
    ids = tuple(part.call_id or _request(part) for part in unknown or answers)
    return UnknownCalls(tuple(call.id for call in waiting), ids)


def pending_message(history: Sequence[Message]) -> Message | None:
    """Returns the message whose calls wait for the client; some of them may be answered."""
    for message in reversed(history):
        if message.role == "tool":
            return None
        if gated_calls(message):
            return message if waiting_calls(calls_of(message), find_answers(history, message)) else None
    return None


def find_answers(history: Sequence[Message], pending: Message) -> dict[str, Answer]:
    """Returns the first answer to each gated call of `pending`, by the provider's id."""
    answers: dict[str, Answer] = {}
    after = next(place for place, message in enumerate(history) if message.id == pending.id)
    for message in history[after + 1 :]:
        for part in answers_in(message):
            for request, call in _calls_by_request(pending):
                if _is_for(part, request, call):
                    answers.setdefault(call.id, part)
    return answers


def answers_in(message: Message) -> tuple[Answer, ...]:
    """Returns the answers that a message from the client holds."""
    if message.role != "approval":
        return ()
    return tuple(part for part in message.parts if isinstance(part, Decision | Return))


def waiting_calls(calls: Sequence[Call], answers: dict[str, Answer]) -> tuple[Call, ...]:
    """Returns the calls that still wait."""
    return tuple(call for call in calls if call.gate and call.id not in answers)


def settle_call(call: Call, answer: Answer | None) -> Call | Return:
    """Returns what the client's answer makes of its call: the call, to be run, or its return."""
    match answer:
        case None:
            return call
        case Return():
            return replace(answer, call_id=call.id, name=call.name, by_client=True)
        case Decision(approve=True):
            if call.gate == "client":
                return Return(call.id, call.name, _NOT_RETURNED, is_error=True, refused=True, by_client=True)
            return call
        case Decision(reason=reason):
            sentence = f"This call was denied. Reason: {reason}" if reason else "This call was denied."
            return Return(call.id, call.name, sentence, is_error=True, refused=True, by_client=True)


def decline_calls(history: Sequence[Message], pending: Message, why: str = "") -> tuple[Return, ...]:
    """Returns the returns of all calls of a message when waiting for the client is given up: what it has returned
    stays.

    `why`: what is said of the others, unless it is that the run was cancelled.
    """
    answers = find_answers(history, pending)
    return tuple(
        Return(call.id, call.name, why or _DECLINED, is_error=True, refused=True) if isinstance(made, Call) else made
        for call in calls_of(pending)
        for made in (settle_call(call, answers.get(call.id)),)
    )


def waiting_runs(history: Sequence[Message], pending: Message) -> tuple[UUID, ...]:
    """Returns the runs that ended because calls of `pending` wait: the one that made them, then those that answered in
    part.
    """
    place = next(place for place, message in enumerate(history) if message.id == pending.id)
    asking = (pending, *filter(answers_in, history[place:]))
    return tuple(dict.fromkeys(message.run_id for message in asking if message.run_id is not None))


def find_repeated_run(answers: Sequence[Answer], earlier: Iterable[tuple[UUID, Sequence[Answer]]]) -> UUID | None:
    """Returns the run that goes on, or is about to, with answers to all the calls that `answers` answers."""
    for run_id, answered in earlier:
        if all(any(_covers(other, part) for other in answered) for part in answers):
            return run_id
    return None


_KEEP_ALIVE = (
    "<system-alert>An automated keep-alive: the client repeated an answer that had been taken before. Nothing was run "
    "again; go on from here.</system-alert>"
)
# Messages in which the answer or the return of a call is looked for, when it is answered once more.
_LATELY = 10
_DECLINED = "The run was cancelled while a call waited for the client, and this call was not run."
_NOT_RETURNED = "This tool runs at the client, which approved the call but returned nothing. It was not run."


def _check_late_answers(history: Sequence[Message], answers: Sequence[Answer]) -> Verdict:
    """Returns an answer to calls that do not wait: they were answered lately, or it is a mistake."""
    settled = [one for message in history[-_LATELY:] for one in _settled_by(message, history)]
    return RepeatedAnswer() if all(any(_is_for(part, *one) for one in settled) for part in answers) else NothingWaits()


def _settled_by(message: Message, history: Sequence[Message]) -> Iterator[tuple[str, Call]]:
    """Yields the calls that waited once, each with its request, which a message answers or has the return of."""
    answers = [part for part in message.parts if isinstance(part, Decision | Return)]
    for earlier in history if answers else ():
        for request, call in _calls_by_request(earlier):
            if any(_is_for(part, request, call) for part in answers):
                yield request, call


def _calls_by_request(message: Message) -> tuple[tuple[str, Call], ...]:
    """Returns the calls in a message that wait, or waited, each with the request that it is shown in."""
    return tuple((str(request_id(message.id)), call) for call in gated_calls(message))


def _request(part: Answer) -> str:
    """Returns the request that an answer is for, as far as it says so."""
    return part.request_id if isinstance(part, Decision) else ""


def _is_for(part: Answer, request: str, call: Call) -> bool:
    """Returns whether it answers the call; a decision without an id answers all that wait."""
    if _request(part) not in ("", request):
        return False
    return part.call_id == call.id or (not part.call_id and isinstance(part, Decision))


def _covers(earlier: Answer, part: Answer) -> bool:
    """Returns whether one answer may be about all that the other one is about, as far as they say."""
    requests = {_request(earlier), _request(part)} - {""}
    return len(requests) < 2 and (earlier.call_id == part.call_id or "" in (earlier.call_id, part.call_id))


def was_just_compacted(history: Sequence[Message]) -> bool:
    """Returns whether what was said lately may have left the window: it is a summary, with little after it."""
    return bool(history) and history[0].role == "summary" and len(history) < _LATELY


def until_last_return(log: Sequence[Message]) -> Sequence[Message]:
    """Returns a log without what was said after the newest return of a tool."""
    last = max((place for place, message in enumerate(log) if message.role == "tool"), default=-1)
    return log[: last + 1]


def goes_on_anew(messages: Sequence[Message], run_id: UUID, now: datetime) -> tuple[Message, ...]:
    """Returns an input without the answers that were given before: what is said beside them, else a sentence that lets
    the model go on.
    """
    others = tuple(message for message in messages if not answers_in(message))
    return others or (Message(uuid5(run_id, "keep-alive"), "user", (Text(_KEEP_ALIVE),), now, run_id),)


def answers_of(messages: Iterable[Message]) -> tuple[Answer, ...]:
    """Returns all answers that messages hold."""
    return tuple(part for message in messages for part in answers_in(message))
